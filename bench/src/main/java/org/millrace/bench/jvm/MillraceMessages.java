package org.millrace.bench.jvm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.ReduceOp;

/** Messages and all-reduces of Millrace. Each receive and each all-reduce waits until the operation is complete. */
public final class MillraceMessages implements Messages {

    private static final Duration DEADLINE = Duration.ofMinutes(2);

    private final Arena arena = Arena.ofShared();
    private final Communicator communicator;
    private final DeviceStream stream;
    private final MemorySegment sent;
    private final MemorySegment received;

    /**
     * Joins the group.
     *
     * @param meeting place of the ranks
     */
    public MillraceMessages(Meeting meeting) {
        communicator = Millrace.join("file:" + meeting.directory().resolve("meeting"), meeting.rank(), meeting.size());
        stream = communicator.device().newStream();
        sent = communicator.device().allocate(JvmRank.LARGEST_SUM, arena);
        received = communicator.device().allocate(JvmRank.LARGEST_SUM, arena);
    }

    @Override
    public MemorySegment sent() {
        return sent;
    }

    @Override
    public MemorySegment received() {
        return received;
    }

    @Override
    public void send(int bytes) {
        communicator.send(sent, bytes / Float.BYTES, DataType.FLOAT32, 1 - communicator.rank(), stream);
    }

    @Override
    public void receive(int bytes) {
        communicator.receive(received, bytes / Float.BYTES, DataType.FLOAT32, 1 - communicator.rank(), stream);
        stream.synchronize(DEADLINE);
    }

    @Override
    public void flush() {
        stream.synchronize(DEADLINE);
    }

    @Override
    public boolean reduces() {
        return true;
    }

    @Override
    public void allReduce(int bytes) {
        communicator.allReduce(sent, received, bytes / Float.BYTES, DataType.FLOAT32, ReduceOp.SUM, stream);
        stream.synchronize(DEADLINE);
    }

    @Override
    public void close() {
        flush();
        stream.close();
        communicator.close();
        arena.close();
    }
}
