package org.millrace.chronicle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import net.openhft.chronicle.bytes.BytesIn;
import net.openhft.chronicle.bytes.BytesMarshallable;
import net.openhft.chronicle.bytes.BytesOut;
import org.junit.jupiter.api.Test;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.Serializer;

/**
 * A serializer of objects that write themselves by Chronicle Bytes, in a JVM without options that open the JDK's
 * packages.
 */
class ChronicleSerializerTest {

    private static final int CALLS = 2000;

    private static final class Quote implements BytesMarshallable {

        private String symbol = "";
        private long nanos;
        private double[] prices = {};

        Quote() {}

        Quote(String symbol, long nanos, double... prices) {
            this.symbol = symbol;
            this.nanos = nanos;
            this.prices = prices;
        }

        @Override
        public void writeMarshallable(BytesOut<?> out) {
            out.writeUtf8(symbol);
            out.writeLong(nanos);
            out.writeInt(prices.length);
            for (double price : prices) {
                out.writeDouble(price);
            }
        }

        @Override
        public void readMarshallable(BytesIn<?> in) {
            symbol = in.readUtf8();
            nanos = in.readLong();
            prices = new double[in.readInt()];
            for (int i = 0; i < prices.length; i++) {
                prices[i] = in.readDouble();
            }
        }

        @Override
        public String toString() {
            return symbol + " " + nanos + " " + List.of(prices[0], prices[prices.length - 1], prices.length);
        }
    }

    /** An object that allocates no memory when the serializer reads it. */
    private static final class Count implements BytesMarshallable {

        private long value;

        @Override
        public void writeMarshallable(BytesOut<?> out) {
            out.writeLong(value);
        }

        @Override
        public void readMarshallable(BytesIn<?> in) {
            value = in.readLong();
        }
    }

    /**
     * An object that contains another object. The serializer writes the inner object while it writes the outer object.
     */
    private static final class Nested implements BytesMarshallable {

        static final Serializer<Nested> SERIALIZER = new ChronicleSerializer<>(Nested::new);

        private int depth;
        private byte[] inner = {};

        @Override
        public void writeMarshallable(BytesOut<?> out) {
            out.writeInt(depth);
            if (depth > 0) {
                Nested part = new Nested();
                part.depth = depth - 1;
                inner = SERIALIZER.serialize(part);
            }
            out.write(inner);
        }

        @Override
        public void readMarshallable(BytesIn<?> in) {
            depth = in.readInt();
            inner = new byte[Math.toIntExact(in.readRemaining())];
            in.read(inner);
            if (depth > 0) {
                assertEquals(depth - 1, SERIALIZER.deserialize(inner).depth);
            }
        }
    }

    /** An object that Chronicle writes and reads by reflection. */
    private static final class Unwritten implements BytesMarshallable {
        private int number = 5;
    }

    private record Failing(AssertionError error) implements BytesMarshallable {

        @Override
        public void writeMarshallable(BytesOut<?> out) {
            throw error;
        }

        @Override
        public void readMarshallable(BytesIn<?> in) {
            throw error;
        }
    }

    /** A program that makes a serializer and prints the exception. */
    static final class Denied {
        public static void main(String[] args) {
            for (int i = 0; i < 2; i++) {
                try {
                    new ChronicleSerializer<>(Quote::new);
                    System.out.println("no exception");
                } catch (MillraceException denied) {
                    System.out.println(denied.getMessage());
                }
            }
        }
    }

    private static double[] prices(int count) {
        double[] prices = new double[count];
        for (int i = 0; i < count; i++) {
            prices[i] = i + 0.5;
        }
        return prices;
    }

    @Test
    void ranksExchangeObjectsOfAnySize() {
        // the ranks are threads, which share this object
        Serializer<Quote> quotes = new ChronicleSerializer<>(Quote::new);
        Millrace.local(3, communicator -> {
            int rank = communicator.rank();
            for (int size : new int[] {1, 10_000, 3}) {
                Quote mine = new Quote("é" + rank, rank, prices(size + rank));
                List<String> expected = new ArrayList<>();
                for (int each = 0; each < 3; each++) {
                    expected.add("é" + each + " " + each + " " + List.of(0.5, size + each - 0.5, size + each));
                }
                assertEquals(expected, communicator.allGather(mine, quotes).stream().map(Quote::toString).toList());
                assertEquals(expected,
                        communicator.allToAll(List.of(mine, mine, mine), quotes)
                                .stream()
                                .map(Quote::toString)
                                .toList());
                assertEquals(expected.get(1), communicator.broadcast(rank == 1 ? mine : null, 1, quotes).toString());
            }
        });
    }

    @Test
    void anObjectMayUseItsOwnSerializer() {
        Nested object = new Nested();
        object.depth = 3;
        assertEquals(3, Nested.SERIALIZER.deserialize(Nested.SERIALIZER.serialize(object)).depth);
    }

    @Test
    void aCallAllocatesOnlyItsResult() {
        Count count = new Count();
        Serializer<Count> counts = new ChronicleSerializer<>(() -> count);
        long each = 0;
        for (int round = 0; round < 2; round++) { // the first round loads and links classes
            long before = allocated();
            for (int i = 0; i < CALLS; i++) {
                count.value = i;
                assertEquals(i, counts.deserialize(counts.serialize(count)).value);
            }
            each = (allocated() - before) / CALLS;
        }
        assertEquals(16 + Long.BYTES, each, "bytes of a call; the result is an array of 8 bytes");
    }

    private static long allocated() {
        return ((com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean()).getCurrentThreadAllocatedBytes();
    }

    @Test
    void bytesOfAnotherTypeAreRefused() {
        Serializer<Quote> quotes = new ChronicleSerializer<>(Quote::new);
        Serializer<Count> counts = new ChronicleSerializer<>(Count::new);
        byte[] bytes = quotes.serialize(new Quote("A", 1, 2, 3));
        refused("Count reads fewer than the 30 bytes of the object: do all ranks use the same serializer?",
                () -> counts.deserialize(bytes));
        refused("Count reads more than the 3 bytes of the object", () -> counts.deserialize(new byte[3]));
        assertEquals(new Quote("A", 1, 2, 3).toString(), quotes.deserialize(bytes).toString());
        Count count = new Count();
        count.value = 9;
        assertEquals(9, counts.deserialize(counts.serialize(count)).value,
                "the serializer is unusable after a refusal");
    }

    @Test
    void anObjectWithoutItsOwnMethodsIsRefused() {
        Serializer<Unwritten> serializer = new ChronicleSerializer<>(Unwritten::new);
        refused("Unwritten has fields that reflection cannot access: implement writeMarshallable and readMarshallable",
                () -> serializer.serialize(new Unwritten()));
        assertEquals(5, new Unwritten().number);
    }

    @Test
    void otherErrorsOfAnObjectReachTheProgram() {
        AssertionError mine = new AssertionError("mine");
        Serializer<Failing> failing = new ChronicleSerializer<>(() -> new Failing(mine));
        assertSame(mine, assertThrows(AssertionError.class, () -> failing.serialize(new Failing(mine))));
        assertSame(mine, assertThrows(AssertionError.class, () -> failing.deserialize(new byte[8])));
    }

    @Test
    void aJvmThatDeniesUnsafeIsNamedOnce() throws Exception {
        Process child = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--sun-misc-unsafe-memory-access=deny", "-cp",
                System.getProperty("java.class.path"), Denied.class.getName()).redirectErrorStream(true).start();
        String printed = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertTrue(child.waitFor(30, TimeUnit.SECONDS), printed);
        String sentence = "Chronicle Bytes cannot start: it requires sun.misc.Unsafe, which"
                + " --sun-misc-unsafe-memory-access=deny forbids, and the jars chronicle-core, posix and slf4j-api";
        assertEquals(List.of(sentence, sentence), printed.lines().toList());
    }

    private static void refused(String text, Runnable call) {
        String message = assertThrows(IllegalArgumentException.class, call::run).getMessage();
        assertTrue(message.contains(text), message);
    }
}
