package org.millrace.cli.check;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.stream.IntStream;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.Stream;

/**
 * The collectives that can be measured. Factors are those of nccl-tests' PERFORMANCE.md; {@code count} is what the call
 * is given, as in nccl-tests' table.
 */
public enum CollectiveCall {
    /** A ring moves every byte but a rank's own share twice. */
    ALL_REDUCE(Operation.ALL_REDUCE, Form.REDUCES) {
        @Override
        public void enqueue(Communicator communicator, MemorySegment send, MemorySegment receive, long count,
                DataType type, ReduceOp op, Stream stream) {
            communicator.allReduce(send, receive, count, type, op, stream);
        }

        @Override
        public double busFactor(int ranks) {
            return 2.0 * (ranks - 1) / ranks;
        }

        @Override
        public List<Part> result(int rank, int ranks, long count) {
            return List.of(Part.reduced(0, count));
        }
    },
    /** Everything but a rank's own part has to reach it. */
    ALL_GATHER(Operation.ALL_GATHER, Form.SPREADS_RECEIVE) {
        @Override
        public void enqueue(Communicator communicator, MemorySegment send, MemorySegment receive, long count,
                DataType type, ReduceOp op, Stream stream) {
            communicator.allGather(send, receive, count, type, stream);
        }

        @Override
        public double busFactor(int ranks) {
            return (ranks - 1.0) / ranks;
        }

        @Override
        public List<Part> result(int rank, int ranks, long count) {
            return IntStream.range(0, ranks).mapToObj(source -> Part.copied(source, 0, count)).toList();
        }
    },
    /** The other way round. */
    REDUCE_SCATTER(Operation.REDUCE_SCATTER, Form.SPREADS_SEND) {
        @Override
        public void enqueue(Communicator communicator, MemorySegment send, MemorySegment receive, long count,
                DataType type, ReduceOp op, Stream stream) {
            communicator.reduceScatter(send, receive, count, type, op, stream);
        }

        @Override
        public double busFactor(int ranks) {
            return (ranks - 1.0) / ranks;
        }

        @Override
        public List<Part> result(int rank, int ranks, long count) {
            return List.of(Part.reduced(rank * count, count));
        }
    },
    /** The root's link carries every byte once. */
    BROADCAST(Operation.BROADCAST, Form.ROOTED) {
        @Override
        public void enqueue(Communicator communicator, MemorySegment send, MemorySegment receive, long count,
                DataType type, ReduceOp op, Stream stream) {
            communicator.broadcast(send, receive, count, type, ROOT, stream);
        }

        @Override
        public List<Part> result(int rank, int ranks, long count) {
            return List.of(Part.copied(ROOT, 0, count));
        }
    },
    /** As a broadcast, backwards. Only the root has a result. */
    REDUCE(Operation.REDUCE, Form.ROOTED_REDUCES) {
        @Override
        public void enqueue(Communicator communicator, MemorySegment send, MemorySegment receive, long count,
                DataType type, ReduceOp op, Stream stream) {
            communicator.reduce(send, receive, count, type, op, ROOT, stream);
        }

        @Override
        public List<Part> result(int rank, int ranks, long count) {
            return rank == ROOT ? List.of(Part.reduced(0, count)) : List.of();
        }
    },
    /** A rank keeps one part of its own. Not in place. */
    ALLTOALL(Operation.ALL_TO_ALL, Form.SPREADS_BOTH) {
        @Override
        public void enqueue(Communicator communicator, MemorySegment send, MemorySegment receive, long count,
                DataType type, ReduceOp op, Stream stream) {
            communicator.allToAll(send, receive, count, type, stream);
        }

        @Override
        public double busFactor(int ranks) {
            return (ranks - 1.0) / ranks;
        }

        @Override
        public List<Part> result(int rank, int ranks, long count) {
            return IntStream.range(0, ranks).mapToObj(source -> Part.copied(source, rank * count, count)).toList();
        }
    },
    /** The root's link brings everything but the root's own part. */
    GATHER(Operation.GATHER, Form.ROOTED_GATHERS) {
        @Override
        public void enqueue(Communicator communicator, MemorySegment send, MemorySegment receive, long count,
                DataType type, ReduceOp op, Stream stream) {
            communicator.gather(send, receive, count, type, ROOT, stream);
        }

        @Override
        public double busFactor(int ranks) {
            return (ranks - 1.0) / ranks;
        }

        @Override
        public List<Part> result(int rank, int ranks, long count) {
            return rank == ROOT ? IntStream.range(0, ranks).mapToObj(source -> Part.copied(source, 0, count)).toList()
                    : List.of();
        }
    },
    /** The other way round. */
    SCATTER(Operation.SCATTER, Form.ROOTED_SCATTERS) {
        @Override
        public void enqueue(Communicator communicator, MemorySegment send, MemorySegment receive, long count,
                DataType type, ReduceOp op, Stream stream) {
            communicator.scatter(send, receive, count, type, ROOT, stream);
        }

        @Override
        public double busFactor(int ranks) {
            return (ranks - 1.0) / ranks;
        }

        @Override
        public List<Part> result(int rank, int ranks, long count) {
            return List.of(Part.copied(ROOT, rank * count, count));
        }
    },
    /** Every rank sends to the next one and receives from the one before. Not in place. */
    SENDRECV(Operation.SEND_RECEIVE, Form.MOVES) {
        @Override
        public void enqueue(Communicator communicator, MemorySegment send, MemorySegment receive, long count,
                DataType type, ReduceOp op, Stream stream) {
            int ranks = communicator.size();
            communicator.group(() -> {
                communicator.send(send, count, type, (communicator.rank() + 1) % ranks, stream);
                communicator.receive(receive, count, type, (communicator.rank() + ranks - 1) % ranks, stream);
            });
        }

        @Override
        public List<Part> result(int rank, int ranks, long count) {
            return List.of(Part.copied((rank + ranks - 1) % ranks, 0, count));
        }
    };

    /** The root of those that have one. */
    public static final int ROOT = 0;

    /**
     * A part of a rank's result, in the order of its memory.
     *
     * @param source whose operand it is a copy of; {@link #ALL} if it is the reduction of all ranks'
     * @param first  the index in the operand of its first element
     * @param count  how many elements
     */
    public record Part(int source, long first, long count) {

        static final int ALL = -1;

        public static Part reduced(long first, long count) {
            return new Part(ALL, first, count);
        }

        public static Part copied(int source, long first, long count) {
            return new Part(source, first, count);
        }
    }

    /**
     * How operands are laid out.
     *
     * @param spreadSend    whether a rank sends a part to each rank
     * @param spreadReceive whether a rank receives a part from each rank
     * @param reduces       whether elements are combined
     * @param rooted        whether one rank is different from the others
     * @param inPlace       whether there is a form of it in place
     */
    private record Form(boolean spreadSend, boolean spreadReceive, boolean reduces, boolean rooted, boolean inPlace) {
        static final Form REDUCES = new Form(false, false, true, false, true);
        static final Form SPREADS_RECEIVE = new Form(false, true, false, false, true);
        static final Form SPREADS_SEND = new Form(true, false, true, false, true);
        static final Form SPREADS_BOTH = new Form(true, true, false, false, false);
        static final Form ROOTED = new Form(false, false, false, true, true);
        static final Form ROOTED_REDUCES = new Form(false, false, true, true, true);
        static final Form ROOTED_GATHERS = new Form(false, true, false, true, true);
        static final Form ROOTED_SCATTERS = new Form(true, false, false, true, true);
        static final Form MOVES = new Form(false, false, false, false, false);
    }

    private final Operation operation;
    private final Form form;

    CollectiveCall(Operation operation, Form form) {
        this.operation = operation;
        this.form = form;
    }

    /**
     * Enqueues the operation once. In place if send and receive lie as {@link #sendOffset} and {@link #receiveOffset}
     * say.
     */
    public abstract void enqueue(Communicator communicator, MemorySegment send, MemorySegment receive, long count,
            DataType type, ReduceOp op, Stream stream);

    /** What a rank's receive operand must hold. */
    public abstract List<Part> result(int rank, int ranks, long count);

    /** How many bytes the busiest link carries for each byte of the operand. */
    public double busFactor(int ranks) {
        return 1;
    }

    /** By how much the larger operand is larger than the count that the call is given. */
    public int parts(int ranks) {
        return form.spreadSend || form.spreadReceive ? ranks : 1;
    }

    public long sendCount(long count, int ranks) {
        return form.spreadSend ? count * ranks : count;
    }

    public long receiveCount(long count, int ranks) {
        return form.spreadReceive ? count * ranks : count;
    }

    /** Where in the one operand of an operation in place a rank's elements lie. */
    public long sendOffset(long count, int rank) {
        return form.spreadReceive ? rank * count : 0;
    }

    /** Where in the one operand of an operation in place a rank's result lies. */
    public long receiveOffset(long count, int rank) {
        return form.spreadSend ? rank * count : 0;
    }

    public boolean hasInPlace() {
        return form.inPlace;
    }

    public boolean reduces() {
        return form.reduces;
    }

    /** The root's rank, or -1. */
    public int root() {
        return form.rooted ? ROOT : -1;
    }

    @Override
    public String toString() {
        return operation.label();
    }
}
