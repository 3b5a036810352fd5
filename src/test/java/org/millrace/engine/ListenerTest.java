package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;
import org.millrace.Communicator;
import org.millrace.DeviceStream;
import org.millrace.JoinBuilder;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.PeerLostException;
import org.millrace.ReduceOp;

/**
 * Messages to a program that waits or makes no calls. The program's listener receives these messages. Without a
 * listener, Millrace writes the messages to standard error.
 */
class ListenerTest {

    @TempDir
    Path directory;

    private JoinBuilder builder(int rank) {
        return Millrace.builder()
                .rendezvous("file:" + directory.resolve("group"))
                .rank(rank)
                .size(2)
                .device("host")
                .network("socket")
                .bufferSize(32 << 10);
    }

    private static void allReduce(Communicator communicator, DeviceStream stream) throws Exception {
        communicator.allReduce(Operand.of(new int[1 << 18]), ReduceOp.SUM, stream)
                .toCompletableFuture()
                .get(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    /** Collects lines, and lets other threads wait for a line. */
    private static final class Printed extends PrintStream {

        final LinkedBlockingQueue<String> lines = new LinkedBlockingQueue<>();

        Printed() {
            super(new ByteArrayOutputStream(), true, StandardCharsets.UTF_8);
        }

        @Override
        public void println(String line) {
            if (line.startsWith("millrace: ")) {
                lines.add(line);
            }
        }

        String next() throws InterruptedException {
            return lines.poll(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }
    }

    @Test
    @ResourceLock(Resources.SYSTEM_ERR)
    void withoutAListenerAStallIsPrintedOnce() throws Exception {
        PrintStream before = System.err;
        Printed printed = new Printed();
        System.setErr(printed);
        try {
            List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
                try (Communicator communicator = builder(rank).stallDeadline(Duration.ofSeconds(2)).join();
                        DeviceStream stream = communicator.device().newStream()) {
                    if (rank == 1) {
                        String told = printed.next();
                        assertTrue(told.startsWith(
                                "millrace: rank 0, operation 0: all_reduce of 262144 int32, sum: rank 1 has not"),
                                told);
                    }
                    allReduce(communicator, stream);
                }
                return null;
            });
            thrown.forEach(failure -> assertNull(failure));
            assertEquals(List.of(), List.copyOf(printed.lines));
        } finally {
            System.setErr(before);
        }
    }

    /** The listener hears of a loss even if the program has no operation in flight and calls no method. */
    @Test
    @ResourceLock(Resources.SYSTEM_ERR)
    void aLossIsHeardOnceByTheListenerAndNotPrinted() throws Exception {
        PrintStream before = System.err;
        Printed printed = new Printed();
        LinkedBlockingQueue<PeerLostException> losses = new LinkedBlockingQueue<>();
        System.setErr(printed);
        try {
            List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
                JoinBuilder group = builder(rank).onLoss(losses::add);
                if (rank == 1) {
                    group.set("MILLRACE_FAULT", "cut:frame=3");
                }
                try (Communicator communicator = group.join();
                        DeviceStream stream = communicator.device().newStream()) {
                    if (rank == 1) {
                        allReduce(communicator, stream);
                    } else {
                        communicator.allReduce(Operand.of(new int[1 << 18]), ReduceOp.SUM, stream);
                    }
                }
                return null;
            });
            assertInstanceOf(PeerLostException.class, thrown.get(1).getCause(), String.valueOf(thrown.get(1)));
            for (int i = 0; i < 2; i++) {
                PeerLostException lost = losses.poll(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
                assertEquals(1 - lost.rank(), lost.peer().orElseThrow(), lost.getMessage());
            }
            assertTrue(losses.isEmpty());
            assertEquals(List.of(), List.copyOf(printed.lines));
        } finally {
            System.setErr(before);
        }
    }
}
