package org.millrace;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.function.IntPredicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.operation.CallerCheck;
import org.millrace.operation.Completions;
import org.millrace.operation.OperationGroup;
import org.millrace.operation.Required;

/** Implements {@link BlockingOperations} by operations on a temporary stream. The caller waits for the operations. */
final class Blocking {

    /**
     * Work that {@link #run} does on this thread after the thread has waited for the enqueued operations. Null unless
     * {@link #run} is enqueueing operations on this thread.
     */
    private static final ThreadLocal<@Nullable List<Runnable>> BEHIND = new ThreadLocal<>();

    /** Whether the thread is in an operation that consists of several operations. */
    private static final ThreadLocal<Boolean> COMPOSED = ThreadLocal.withInitial(() -> false);

    private Blocking() {}

    /** A stream for the operations of one call, whose caller waits for them. */
    private static final class OwnStream implements AutoCloseable {

        final DeviceStream stream;
        private boolean isLeft;

        OwnStream(Communicator communicator) {
            stream = communicator.device().newStream();
        }

        /**
         * Leaves the operations to the device and does not wait for them. The returned stage completes after the
         * operations and the deferred work.
         */
        CompletionStage<Void> leave(List<Runnable> behind) {
            isLeft = true;
            return stream.completion().whenComplete((_, thrown) -> {
                try (stream) {
                    if (thrown == null) {
                        behind.forEach(Runnable::run);
                    }
                }
            });
        }

        @Override
        public void close() {
            if (!isLeft) {
                stream.close();
            }
        }
    }

    /**
     * Enqueues operations, waits for them, and runs the deferred work. If the wait exceeds its deadline, this method
     * aborts the communicator: a rank that abandons an operation no longer agrees with the other ranks about the order
     * of operations. If the thread is interrupted, the operations continue without the thread, so the ranks still agree
     * about the order.
     */
    static void run(BlockingOperations caller, Consumer<DeviceStream> operations) {
        Communicator communicator = (Communicator) caller;
        if (OperationGroup.isOpen() || OperationGroup.isRecorded()) {
            throw new IllegalStateException("rank " + communicator.rank() + ": an operation without a stream cannot"
                    + " run in a group or a plan, where it would never be complete: give it a stream");
        }
        CallerCheck.of(communicator).run(() -> {
            refuseIfInterrupted(communicator);
            enqueueAndWait(communicator, operations);
        });
    }

    private static void enqueueAndWait(Communicator communicator, Consumer<DeviceStream> operations) {
        List<Runnable> behind = new ArrayList<>();
        try (OwnStream own = new OwnStream(communicator)) {
            try {
                BEHIND.set(behind);
                try {
                    operations.accept(own.stream);
                } finally {
                    BEHIND.remove();
                }
                own.stream.synchronize(communicator.patience());
                behind.forEach(Runnable::run);
            } catch (DeadlineException late) {
                communicator.abort(late);
                throw late;
            } catch (OperationInterruptedException waiting) {
                if (COMPOSED.get()) {
                    throw aborted(communicator);
                }
                CompletionStage<Void> rest = own.leave(behind);
                throw new OperationInterruptedException("rank " + communicator.rank() + ": the thread was interrupted"
                        + " while it waited for an operation, which continues and uses its operands until completion()"
                        + " of this exception is complete", communicator.rank(), null, () -> rest);
            }
        }
    }

    private static void refuseIfInterrupted(Communicator communicator) {
        if (!Thread.currentThread().isInterrupted()) {
            return;
        }
        if (COMPOSED.get()) {
            throw aborted(communicator);
        }
        throw new OperationInterruptedException(
                "rank " + communicator.rank()
                        + ": the thread had been interrupted before the operation, which was not started",
                communicator.rank(), null, null);
    }

    /**
     * Aborts the communicator before the memory of a composed operation is freed. Without the abort, the other ranks
     * would wait for the remaining operations.
     */
    private static OperationInterruptedException aborted(Communicator communicator) {
        OperationInterruptedException reason = new OperationInterruptedException("rank " + communicator.rank()
                + ": the thread was interrupted within an operation that consists of several. The other ranks would wait"
                + " for the rest, so the communicator was aborted", communicator.rank(), null, null);
        communicator.abort(reason);
        return reason;
    }

    /** Runs an operation that consists of several operations. */
    static <T extends @Nullable Object> T composed(BlockingOperations caller, Supplier<T> parts) {
        boolean before = COMPOSED.get();
        try {
            return CallerCheck.of(caller).call(() -> {
                refuseIfInterrupted((Communicator) caller);
                COMPOSED.set(true);
                return parts.get();
            });
        } finally {
            COMPOSED.set(before);
        }
    }

    /**
     * Defers work of the calling thread until the thread has waited for its operation. Returns false, and defers
     * nothing, if the calling thread will not wait.
     */
    static boolean leave(Runnable rest) {
        List<Runnable> behind = BEHIND.get();
        return behind != null && behind.add(rest);
    }

    /**
     * Enqueues an exchange of operands with each rank.
     *
     * @param send    returns the operand to send to a rank; null to send nothing
     * @param receive returns the operand to receive from a rank; null to receive nothing
     * @return a stage that completes with the exchange
     */
    static CompletionStage<Void> exchange(Communicator communicator, IntFunction<@Nullable Operand> send,
            IntFunction<@Nullable Operand> receive, DeviceStream stream) {
        int ranks = communicator.size();
        for (int peer = 0; peer < ranks; peer++) {
            OperandCall.check(communicator, Operation.SEND_RECEIVE, "send", send.apply(peer), false);
            OperandCall.check(communicator, Operation.SEND_RECEIVE, "receive", receive.apply(peer), true);
        }
        List<CompletableFuture<Void>> parts = new ArrayList<>();
        communicator.group(() -> {
            for (int distance = 0; distance < ranks; distance++) {
                int to = (communicator.rank() + distance) % ranks;
                int from = (communicator.rank() - distance + ranks) % ranks;
                Operand sent = send.apply(to);
                if (sent != null && sent.count() > 0) {
                    parts.add(communicator.send(sent, to, stream).toCompletableFuture());
                }
                Operand received = receive.apply(from);
                if (received != null && received.count() > 0) {
                    parts.add(communicator.receive(received, from, stream).toCompletableFuture());
                }
            }
        });
        CompletableFuture<Void> whole = Completions.newStage();
        CompletableFuture.allOf(parts.toArray(CompletableFuture[]::new)).whenComplete((_, thrown) -> {
            if (thrown == null) {
                whole.complete(null);
            } else {
                whole.completeExceptionally(thrown.getCause());
            }
        });
        return whole;
    }

    /** Refuses the number of a rank that does not exist, before this rank sends anything. */
    static void requireRank(Communicator communicator, String what, int number) {
        if (number < 0 || number >= communicator.size()) {
            throw new IllegalArgumentException("rank " + communicator.rank() + ", " + what + ": there is no rank "
                    + number + "; ranks are 0 to " + (communicator.size() - 1));
        }
    }

    /**
     * Refuses an operand if its number of elements differs from the entry of {@code counts} for this rank. Called
     * before this rank sends anything.
     *
     * @param isOptional whether the counts may be missing on this rank
     */
    static void requirePart(Communicator communicator, String what, Operand part, boolean isOptional, long... counts) {
        Required.argument(what, "operand", part);
        Required.argument(what, "array of counts", counts);
        if (isOptional && counts.length == 0) {
            return;
        }
        requireCounts(communicator, what, counts);
        if (part.count() != counts[communicator.rank()]) {
            throw new IllegalArgumentException("rank " + communicator.rank() + ", " + what + ": " + part
                    + ", and the count of this rank is " + counts[communicator.rank()]);
        }
    }

    private static void requireCounts(Communicator communicator, String what, long... counts) {
        Required.argument(what, "array of counts", counts);
        if (counts.length != communicator.size() || Arrays.stream(counts).anyMatch(count -> count < 0)) {
            throw new IllegalArgumentException(
                    "rank " + communicator.rank() + ", " + what + ": counts " + Arrays.toString(counts)
                            + "; give one of 0 or more for each of " + communicator.size() + " ranks");
        }
    }

    /**
     * Returns a function that maps a rank to its part of an operand.
     *
     * @throws IllegalArgumentException if the number of counts differs from the number of ranks, or the operand has
     *                                  fewer elements than the counts require
     */
    static IntFunction<@Nullable Operand> parts(Communicator communicator, String what, @Nullable Operand all,
            long... counts) {
        requireCounts(communicator, what, counts);
        Required.argument(what, "operand", all);
        long left = all.count();
        for (long count : counts) {
            if (count > left) {
                throw new IllegalArgumentException("rank " + communicator.rank() + ", " + what + ": counts "
                        + Arrays.toString(counts) + " are more than the " + all.count() + " elements of " + all);
            }
            left -= count;
        }
        return rank -> all.slice(Arrays.stream(counts, 0, rank).sum(), counts[rank]);
    }

    /** Checks the size in bytes that another rank has announced for an object. Returns the size. */
    static int length(long told) {
        if (told < 0 || told > Integer.MAX_VALUE) {
            throw new MillraceException(
                    "another rank announced an object of " + told + " bytes: do all ranks call the same operation?");
        }
        return (int) told;
    }

    static int[] withRank(Communicator communicator, Operand values, ReduceOp op) {
        Required.argument("allReduceWithRank", "operand values", values);
        Required.argument("allReduceWithRank", "argument op", op);
        if (op != ReduceOp.MIN && op != ReduceOp.MAX || !values.isOnHost(communicator.device())) {
            throw new IllegalArgumentException(op.label() + " of " + values
                    + " cannot be computed with ranks: give MIN or MAX, and elements in memory of the host");
        }
        if (values.bytes() > Integer.MAX_VALUE - 8) {
            throw new IllegalArgumentException("allReduceWithRank: " + values + " has " + values.bytes()
                    + " bytes; the limit is " + (Integer.MAX_VALUE - 8) + ": call it for parts (Operand.slice)");
        }
        byte[] before = bytes(values);
        communicator.allReduce(values, op);
        byte[] after = bytes(values);
        int[] ranks = new int[Math.toIntExact(values.count())];
        int width = ranks.length == 0 ? 1 : before.length / ranks.length;
        for (int i = 0; i < ranks.length; i++) {
            boolean ours = Arrays.equals(before, i * width, (i + 1) * width, after, i * width, (i + 1) * width);
            ranks[i] = ours ? communicator.rank() : Integer.MAX_VALUE;
        }
        communicator.allReduce(Operand.of(ranks), ReduceOp.MIN);
        for (int i = 0; i < ranks.length; i++) {
            ranks[i] = ranks[i] == Integer.MAX_VALUE ? -1 : ranks[i];
        }
        return ranks;
    }

    private static byte[] bytes(Operand values) {
        byte[] bytes = new byte[Math.toIntExact(values.bytes())];
        values.write(MemorySegment.ofArray(bytes));
        return bytes;
    }

    /**
     * Returns the objects of the ranks from which this rank receives, in rank order.
     *
     * @param operation    operation of the program, for messages
     * @param sendsTo      returns whether this rank sends its object to the given rank
     * @param receivesFrom returns whether this rank receives the object of the given rank
     */
    static <T> List<T> gather(BlockingOperations caller, String operation, T object, IntPredicate sendsTo,
            IntPredicate receivesFrom, Serializer<T> serializer) {
        byte[] mine = serialized(operation, object, serializer);
        Communicator communicator = (Communicator) caller;
        return composed(caller, () -> {
            long[] lengths = new long[communicator.size()];
            communicator.allGather(Operand.of(new long[] {mine.length}), Operand.of(lengths));
            return received(communicator, peer -> sendsTo.test(peer) ? mine : null, receivesFrom, lengths, serializer);
        });
    }

    /** Returns the objects of all ranks if this rank is the root; otherwise an empty list. */
    static <T> List<T> gather(BlockingOperations caller, String operation, T object, int root,
            Serializer<T> serializer) {
        requireRank((Communicator) caller, operation + ", root", root);
        boolean isRoot = ((Communicator) caller).rank() == root;
        return gather(caller, operation, object, peer -> peer == root, _ -> isRoot, serializer);
    }

    /** Returns the objects of this rank and of all lower ranks. */
    static <T> List<T> earlier(BlockingOperations caller, String operation, T object, Serializer<T> serializer) {
        int rank = ((Communicator) caller).rank();
        return gather(caller, operation, object, peer -> peer >= rank, peer -> peer <= rank, serializer);
    }

    static <T> List<T> allToAll(Communicator communicator, List<byte[]> objects, Serializer<T> serializer) {
        long[] lengths = objects.stream().mapToLong(bytes -> bytes.length).toArray();
        long[] theirs = new long[lengths.length];
        communicator.allToAll(Operand.of(lengths), Operand.of(theirs));
        return received(communicator, objects::get, _ -> true, theirs, serializer);
    }

    /** Exchanges bytes, and returns the objects that this rank has received. */
    private static <T> List<T> received(Communicator communicator, IntFunction<byte @Nullable []> sent,
            IntPredicate receivesFrom, long[] lengths, Serializer<T> serializer) {
        // one array for each rank, because one Java array may be too small for the bytes of all ranks
        byte[][] all = new byte[lengths.length][];
        for (int rank = 0; rank < all.length; rank++) {
            all[rank] = receivesFrom.test(rank) ? new byte[length(lengths[rank])] : null;
        }
        run(communicator, stream -> exchange(communicator, peer -> operand(sent.apply(peer)),
                peer -> operand(all[peer]), stream));
        return Arrays.stream(all).filter(Objects::nonNull).map(serializer::deserialize).toList();
    }

    private static @Nullable Operand operand(byte @Nullable [] bytes) {
        return bytes == null ? null : Operand.of(bytes);
    }

    /** Returns the bytes of an object. */
    static <T> byte[] serialized(String operation, @Nullable T object, Serializer<T> serializer) {
        Required.argument(operation, "serializer", serializer);
        return Required.argument(operation, "result of the serializer",
                serializer.serialize(Required.argument(operation, "object", object)));
    }

    /** Returns the bytes of one object for each rank. */
    static <T> List<byte[]> serialized(Communicator communicator, String what, @Nullable List<T> objects,
            Serializer<T> serializer) {
        List<byte[]> each = Required.argument(what, "list of objects", objects)
                .stream()
                .map(object -> serialized(what, object, serializer))
                .toList();
        if (each.size() != communicator.size()) {
            throw new IllegalArgumentException("rank " + communicator.rank() + ", " + what + ": " + each.size()
                    + " objects for " + communicator.size() + " ranks: give one for each");
        }
        return each;
    }

    static <T> T scatter(Communicator communicator, @Nullable List<T> objects, int root, Serializer<T> serializer) {
        requireRank(communicator, "scatter, root", root);
        Required.argument("scatter", "serializer", serializer);
        boolean isRoot = communicator.rank() == root;
        List<byte[]> each = isRoot ? serialized(communicator, "scatter", objects, serializer) : List.of();
        long[] length = new long[1];
        communicator.scatter(isRoot ? Operand.of(each.stream().mapToLong(bytes -> bytes.length).toArray()) : null,
                Operand.of(length), root);
        long[] lengths = new long[communicator.size()];
        lengths[root] = length[0];
        return received(communicator, peer -> isRoot ? each.get(peer) : null, peer -> peer == root, lengths, serializer)
                .getFirst();
    }
}
