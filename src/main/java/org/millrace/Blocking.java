package org.millrace;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/** Builds {@link BlockingOperations} from operations on a stream. */
final class Blocking {

    /** Work to do after the operations that this thread waits for; null if it waits for none. */
    private static final ThreadLocal<@Nullable List<Runnable>> BEHIND = new ThreadLocal<>();

    private Blocking() {}

    /**
     * Enqueues operations, waits for them, and runs the remaining work. If the wait fails, the communicator is aborted,
     * because ranks that give up an operation lose their common order.
     */
    static void run(BlockingOperations caller, Consumer<DeviceStream> operations) {
        Communicator communicator = (Communicator) caller;
        if (OperationGroup.isOpen() || OperationGroup.isRecorded()) {
            throw new IllegalStateException("rank " + communicator.rank() + ": an operation without a stream returns"
                    + " when it is complete, which none is before its group ends, or in a plan: give it a stream");
        }
        List<Runnable> behind = new ArrayList<>();
        try (DeviceStream stream = communicator.device().newStream()) {
            try {
                BEHIND.set(behind);
                try {
                    operations.accept(stream);
                } finally {
                    BEHIND.remove();
                }
                stream.synchronize(communicator.patience());
                behind.forEach(Runnable::run);
            } catch (DeadlineException late) {
                communicator.abort(late);
                throw late;
            }
        }
    }

    /**
     * Defers work to this thread if it waits for the operation; this saves another thread. Returns whether it was
     * deferred.
     */
    static boolean leave(Runnable rest) {
        List<Runnable> behind = BEHIND.get();
        return behind != null && behind.add(rest);
    }

    /** Exchanges operands with each rank; null sends or receives nothing. */
    static void exchange(Communicator communicator, IntFunction<@Nullable Operand> send,
            IntFunction<@Nullable Operand> receive) {
        int ranks = communicator.size();
        run(communicator, stream -> communicator.group(() -> {
            for (int distance = 0; distance < ranks; distance++) {
                int to = (communicator.rank() + distance) % ranks;
                int from = (communicator.rank() - distance + ranks) % ranks;
                Operand sent = send.apply(to);
                if (sent != null && sent.count() > 0) {
                    communicator.send(sent, to, stream);
                }
                Operand received = receive.apply(from);
                if (received != null && received.count() > 0) {
                    communicator.receive(received, from, stream);
                }
            }
        }));
    }

    /** Returns the part of each rank. */
    static IntFunction<@Nullable Operand> parts(Operand all, long... counts) {
        if (Arrays.stream(counts).anyMatch(count -> count < 0) || Arrays.stream(counts).sum() > all.count()) {
            throw new IllegalArgumentException("parts of " + Arrays.toString(counts) + " elements are more than " + all
                    + " holds, or less than none");
        }
        return rank -> {
            if (rank >= counts.length) {
                throw new IllegalArgumentException(
                        counts.length + " counts, and there is a rank " + rank + ": give one for each rank");
            }
            return all.slice(Arrays.stream(counts, 0, rank).sum(), counts[rank]);
        };
    }

    /** Checks the number of bytes that another rank announced. */
    static int length(int told) {
        if (told < 0) {
            throw new MillraceException("an object of " + told + " bytes: the ranks do not use the same operation");
        }
        return told;
    }

    static int[] withRank(Communicator communicator, Operand values, ReduceOp op) {
        if (op != ReduceOp.MIN && op != ReduceOp.MAX || !values.isOnHost(communicator.device())) {
            throw new IllegalArgumentException(op.label() + " of " + values
                    + " has no place: give MIN or MAX, and elements in memory of the host");
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

    /** @param root the rank that receives them; -1 for all */
    static <T> List<T> gather(Communicator communicator, T object, int root, Serializer<T> serializer) {
        byte[] mine = serializer.serialize(object);
        long[] lengths = new long[communicator.size()];
        communicator.allGather(Operand.of(new long[] {mine.length}), Operand.of(lengths));
        boolean receives = root < 0 || root == communicator.rank();
        byte[] all = new byte[receives ? Math.toIntExact(Arrays.stream(lengths).sum()) : 0];
        if (root < 0) {
            communicator.allGatherv(Operand.of(mine), Operand.of(all), lengths);
        } else {
            communicator.gatherv(Operand.of(mine), Operand.of(all), root, lengths);
        }
        List<T> objects = new ArrayList<>();
        int at = 0;
        for (int rank = 0; receives && rank < lengths.length; rank++) {
            int end = at + Math.toIntExact(lengths[rank]);
            objects.add(serializer.deserialize(Arrays.copyOfRange(all, at, end)));
            at = end;
        }
        return objects;
    }

    static <T> T scatter(Communicator communicator, @Nullable List<T> objects, int root, Serializer<T> serializer) {
        int ranks = communicator.size();
        boolean isRoot = communicator.rank() == root;
        List<byte[]> each = isRoot ? objects.stream().map(serializer::serialize).toList() : List.of();
        if (isRoot && each.size() != ranks) {
            throw new IllegalArgumentException(each.size() + " objects for " + ranks + " ranks: give one for each");
        }
        long[] lengths = new long[ranks];
        for (int rank = 0; rank < each.size(); rank++) {
            lengths[rank] = each.get(rank).length;
        }
        long[] length = new long[1];
        communicator.scatter(isRoot ? Operand.of(lengths) : null, Operand.of(length), root);
        byte[] mine = new byte[Math.toIntExact(length[0])];
        communicator.scatterv(isRoot ? Operand.bucket(each.stream().map(Operand::of).toArray(Operand[]::new)) : null,
                Operand.of(mine), root, isRoot ? lengths : new long[ranks]);
        return serializer.deserialize(mine);
    }
}
