package org.millrace;

/** What a {@link Communicator} can be asked to do. */
public enum Operation {
    /** See {@link Communicator#allReduce}. */
    ALL_REDUCE("all_reduce"),
    /** See {@link Communicator#allGather}. */
    ALL_GATHER("all_gather"),
    /** See {@link Communicator#reduceScatter}. */
    REDUCE_SCATTER("reduce_scatter"),
    /** See {@link Communicator#broadcast}. */
    BROADCAST("broadcast"),
    /** See {@link Communicator#reduce}. */
    REDUCE("reduce"),
    /** See {@link Communicator#allToAll}. */
    ALL_TO_ALL("alltoall"),
    /** See {@link Communicator#gather}. */
    GATHER("gather"),
    /** See {@link Communicator#scatter}. */
    SCATTER("scatter"),
    /**
     * See {@link Communicator#send} and {@link Communicator#receive}, and {@link Communicator#group}, without which no
     * two ranks could exchange.
     */
    SEND_RECEIVE("sendrecv");

    private final String label;

    Operation(String label) {
        this.label = label;
    }

    /**
     * The name of its test in nccl-tests.
     *
     * @return for instance {@code "all_reduce"}
     */
    public String label() {
        return label;
    }
}
