package org.millrace;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/**
 * Operations of a {@link Communicator}. Each constant has the properties that depend on the operation only: names,
 * number, and the relation of the operands' sizes and offsets to the count of a call.
 */
public enum Operation {
    /** See {@link Communicator#allReduce}. */
    ALL_REDUCE("all_reduce", "AllReduce", 4, Trait.REDUCES),
    /** See {@link Communicator#allGather}. */
    ALL_GATHER("all_gather", "AllGather", 2, Trait.RECEIVES_PARTS),
    /** See {@link Communicator#reduceScatter}. */
    REDUCE_SCATTER("reduce_scatter", "ReduceScatter", 3, Trait.SENDS_PARTS, Trait.REDUCES),
    /** See {@link Communicator#broadcast}. */
    BROADCAST("broadcast", "Broadcast", 0, Trait.ROOT_SENDS),
    /** See {@link Communicator#reduce}. */
    REDUCE("reduce", "Reduce", 1, Trait.ROOT_RECEIVES, Trait.REDUCES),
    /** See {@link Communicator#allToAll}. */
    ALL_TO_ALL("alltoall", "AlltoAll", Operation.SENDS_AND_RECEIVES, Trait.SENDS_PARTS, Trait.RECEIVES_PARTS,
            Trait.NEVER_IN_PLACE),
    /** See {@link Communicator#gather}. */
    GATHER("gather", "Gather", Operation.SENDS_AND_RECEIVES, Trait.ROOT_RECEIVES, Trait.RECEIVES_PARTS),
    /** See {@link Communicator#scatter}. */
    SCATTER("scatter", "Scatter", Operation.SENDS_AND_RECEIVES, Trait.ROOT_SENDS, Trait.SENDS_PARTS),
    /**
     * See {@link Communicator#send} and {@link Communicator#receive}. Two ranks that exchange elements need a
     * {@link Communicator#group}.
     */
    SEND_RECEIVE("sendrecv", "SendRecv", Operation.SENDS_AND_RECEIVES, Trait.NEVER_IN_PLACE);

    private enum Trait {
        /** A rank sends a part to each rank. */
        SENDS_PARTS,
        /** A rank receives a part from each rank. */
        RECEIVES_PARTS,
        /** Only the root sends. */
        ROOT_SENDS,
        /** Only the root receives a result. */
        ROOT_RECEIVES,
        REDUCES,
        NEVER_IN_PLACE
    }

    private static final int SENDS_AND_RECEIVES = 5;
    /**
     * Operations by code. Operations that consist of sends and receives share the code of {@link #SEND_RECEIVE}.
     * {@link #SEND_RECEIVE} is the last constant, so its entry replaces the entries of the other operations with this
     * code.
     */
    private static final List<Operation> BY_CODE;

    static {
        Operation[] byCode = new Operation[SENDS_AND_RECEIVES + 1];
        for (Operation operation : values()) {
            byCode[operation.code] = operation;
        }
        BY_CODE = List.of(byCode);
    }

    private final String label;
    private final String ncclName;
    private final int code;
    private final boolean sendsParts;
    private final boolean receivesParts;
    private final boolean rootSends;
    private final boolean rootReceives;
    private final boolean reduces;
    private final boolean inPlace;

    Operation(String label, String ncclName, int code, Trait... traits) {
        Set<Trait> all = EnumSet.noneOf(Trait.class);
        all.addAll(Arrays.asList(traits));
        this.label = label;
        this.ncclName = ncclName;
        this.code = code;
        sendsParts = all.contains(Trait.SENDS_PARTS);
        receivesParts = all.contains(Trait.RECEIVES_PARTS);
        rootSends = all.contains(Trait.ROOT_SENDS);
        rootReceives = all.contains(Trait.ROOT_RECEIVES);
        reduces = all.contains(Trait.REDUCES);
        inPlace = !all.contains(Trait.NEVER_IN_PLACE);
    }

    /** {@return the name of the operation's test in nccl-tests, for instance {@code "all_reduce"}} */
    public String label() {
        return label;
    }

    /**
     * {@return NCCL's name for the operation, for instance {@code "AllReduce"}} {@code NCCL_PROTO} and NCCL's log use
     * this name. The name of NCCL's function is this name with the prefix {@code nccl}. {@code "SendRecv"} stands for
     * sends and receives, which are two functions of NCCL.
     */
    public String ncclName() {
        return ncclName;
    }

    /**
     * {@return the operation's value of {@code ncclFunc_t}: 0 to 5} An operation that consists of sends and receives
     * has the code of {@link #SEND_RECEIVE}.
     */
    public int code() {
        return code;
    }

    /**
     * {@return the operation that has a code; {@link #SEND_RECEIVE} for all operations that consist of sends and
     * receives}
     *
     * @param code a result of {@link #code()}
     * @throws IllegalArgumentException if the code is unknown
     */
    public static Operation ofCode(int code) {
        if (code < 0 || code >= BY_CODE.size()) {
            throw new IllegalArgumentException("operation code " + code + " is not one of NCCL's: 0 (Broadcast) to "
                    + (BY_CODE.size() - 1) + " (SendRecv)");
        }
        return BY_CODE.get(code);
    }

    /** {@return whether the operation combines elements of several ranks, and so needs a {@link ReduceOp}} */
    public boolean reduces() {
        return reduces;
    }

    /** {@return whether one rank, the root, has another role than the other ranks} */
    public boolean hasRoot() {
        return rootSends || rootReceives;
    }

    /** {@return whether only the root sends; the send operand of other ranks is ignored} */
    public boolean isSentByRoot() {
        return rootSends;
    }

    /** {@return whether only the root receives a result; the receive operand of other ranks is ignored} */
    public boolean isReceivedByRoot() {
        return rootReceives;
    }

    /** {@return whether the result may replace the sent elements} */
    public boolean hasInPlace() {
        return inPlace;
    }

    /**
     * {@return the size of the larger operand divided by the count of the call: 1 or {@code ranks}}
     *
     * @param ranks the communicator's size
     */
    public int parts(int ranks) {
        return sendsParts || receivesParts ? ranks : 1;
    }

    /**
     * {@return number of elements that a sending rank sends: {@code count * ranks} if it sends a part to each rank,
     * otherwise {@code count}}
     *
     * @param count the count of the call
     * @param ranks the communicator's size
     * @throws ArithmeticException if the number overflows
     */
    public long sendCount(long count, int ranks) {
        return sendsParts ? Math.multiplyExact(count, ranks) : count;
    }

    /**
     * {@return number of elements that a receiving rank receives: {@code count * ranks} if it receives a part from each
     * rank, otherwise {@code count}}
     *
     * @param count the count of the call
     * @param ranks the communicator's size
     * @throws ArithmeticException if the number overflows
     */
    public long receiveCount(long count, int ranks) {
        return receivesParts ? Math.multiplyExact(count, ranks) : count;
    }

    /**
     * {@return index of the first element that a rank sends, in the operand of an operation in place}
     *
     * @param count the count of the call
     * @param rank  the rank
     */
    public long sendOffset(long count, int rank) {
        return receivesParts ? rank * count : 0;
    }

    /**
     * {@return index of the first element of a rank's result, in the operand of an operation in place}
     *
     * @param count the count of the call
     * @param rank  the rank
     */
    public long receiveOffset(long count, int rank) {
        return sendsParts ? rank * count : 0;
    }
}
