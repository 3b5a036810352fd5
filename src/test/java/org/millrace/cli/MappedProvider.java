package org.millrace.cli;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import org.millrace.Communicator;
import org.millrace.CommunicatorListener;
import org.millrace.CommunicatorProvider;
import org.millrace.MillraceException;

/**
 * The simplest provider that reduces. Ranks are threads or processes that copy their operands into a shared mapped
 * file. It is only for tests of the command line.
 *
 * <p>
 * {@code MILLRACE_FAULT} plants a fault. With {@code wrong}, rank 1 changes one element of its results. With
 * {@code throw}, rank 1's third operation throws. With {@code hang}, rank 1's third operation never ends, not even
 * after an abort. With {@code die}, rank 1's process ends in its third operation. With {@code late}, rank 1 never
 * joins.
 */
public final class MappedProvider implements CommunicatorProvider {

    public static final String DEVICE = "mapped";
    /** Maximum number of bytes that a rank may reduce. */
    static final long LIMIT = 1 << 20;

    @Override
    public String device() {
        return DEVICE;
    }

    @Override
    public Communicator join(String rendezvous, int rank, int size, Map<String, String> settings,
            CommunicatorListener listener) {
        Path path = Path.of(rendezvous.substring("file:".length()));
        try (FileChannel file =
                FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            MemorySegment memory =
                    file.map(FileChannel.MapMode.READ_WRITE, 0, MappedBarrier.BYTES + size * LIMIT, Arena.ofAuto());
            MappedBarrier barrier = new MappedBarrier(memory, size);
            String fault = rank == 1 ? settings.getOrDefault("MILLRACE_FAULT", "") : "";
            if (fault.equals("late")) {
                barrier.awaitFailure();
            }
            barrier.await();
            return new MappedCommunicator(memory, barrier, rank, size, fault);
        } catch (IOException failure) {
            throw new MillraceException("cannot map " + path + ": " + failure, failure);
        }
    }
}
