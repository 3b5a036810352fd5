package org.millrace.bench;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputFilter;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import net.openhft.chronicle.bytes.BytesIn;
import net.openhft.chronicle.bytes.BytesMarshallable;
import net.openhft.chronicle.bytes.BytesOut;
import org.millrace.Communicator;
import org.millrace.Millrace;
import org.millrace.Serializer;
import org.millrace.chronicle.ChronicleSerializer;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * An all-gather of one object of each of two ranks, by the way in which the object becomes bytes. The ranks are two
 * threads of this JVM. {@code alone} is the serialization and deserialization of one object without an operation.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(value = 1, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
public class ObjectGatherBenchmark {

    private static final int BATCH = 20;

    /** Number of orders in the object, of about 30 bytes each. */
    @Param({"1", "100", "10000"})
    public int orders;

    /** Conversion of the object to bytes. */
    @Param
    public Way way;

    private final ExecutorService other = Executors.newSingleThreadExecutor();
    private final List<Communicator> ranks = new ArrayList<>();
    final Book book = new Book();
    private Serializer<Book> serializer;

    /** Serializer of a {@link Book}. */
    public enum Way {
        /** The object writes itself by Chronicle Bytes. */
        CHRONICLE(new ChronicleSerializer<>(Book::new)),
        /** Code for this class, with a ByteBuffer. */
        BY_HAND(Serializer.of(ObjectGatherBenchmark::toBytes, ObjectGatherBenchmark::fromBytes)),
        /** ObjectOutputStream and ObjectInputStream, with a filter for the classes of the object. */
        JAVA(Serializer.of(ObjectGatherBenchmark::toStream, ObjectGatherBenchmark::fromStream));

        final Serializer<Book> serializer;

        Way(Serializer<Book> serializer) {
            this.serializer = serializer;
        }
    }

    /**
     * A part of a {@link Book}.
     *
     * @param id       number
     * @param price    price
     * @param quantity quantity
     * @param trader   name
     */
    public record Order(long id, double price, int quantity, String trader) implements Serializable {
    }

    /** The object that the ranks gather. */
    public static final class Book implements BytesMarshallable, Serializable {

        private static final long serialVersionUID = 1L;

        private final ArrayList<Order> orders = new ArrayList<>();

        /** {@return the parts} */
        public List<Order> orders() {
            return orders;
        }

        @Override
        public void writeMarshallable(BytesOut<?> out) {
            out.writeInt(orders.size());
            for (Order order : orders) {
                out.writeLong(order.id).writeDouble(order.price).writeInt(order.quantity).writeUtf8(order.trader);
            }
        }

        @Override
        public void readMarshallable(BytesIn<?> in) {
            for (int left = in.readInt(); left > 0; left--) {
                orders.add(new Order(in.readLong(), in.readDouble(), in.readInt(), in.readUtf8()));
            }
        }
    }

    private static byte[] toBytes(Book book) {
        int size = Integer.BYTES;
        List<byte[]> names = new ArrayList<>(book.orders.size());
        for (Order order : book.orders) {
            byte[] name = order.trader.getBytes(StandardCharsets.UTF_8);
            names.add(name);
            size += 2 * Long.BYTES + 2 * Integer.BYTES + name.length;
        }
        ByteBuffer bytes = ByteBuffer.allocate(size).putInt(names.size());
        for (int i = 0; i < names.size(); i++) {
            Order order = book.orders.get(i);
            byte[] name = names.get(i);
            bytes.putLong(order.id).putDouble(order.price).putInt(order.quantity).putInt(name.length).put(name);
        }
        return bytes.array();
    }

    private static Book fromBytes(byte[] array) {
        ByteBuffer bytes = ByteBuffer.wrap(array);
        Book book = new Book();
        for (int left = bytes.getInt(); left > 0; left--) {
            long id = bytes.getLong();
            double price = bytes.getDouble();
            int quantity = bytes.getInt();
            byte[] name = new byte[bytes.getInt()];
            bytes.get(name);
            book.orders.add(new Order(id, price, quantity, new String(name, StandardCharsets.UTF_8)));
        }
        return book;
    }

    private static byte[] toStream(Book book) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(book);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return bytes.toByteArray();
    }

    private static Book fromStream(byte[] bytes) {
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes))) {
            in.setObjectInputFilter(
                    ObjectInputFilter.Config.createFilter("org.millrace.bench.*;java.util.*;java.lang.*;!*"));
            return (Book) in.readObject();
        } catch (IOException | ClassNotFoundException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Makes the object and joins both ranks. */
    @Setup
    public void setUp() throws IOException, InterruptedException, ExecutionException {
        serializer = way.serializer;
        for (int i = 0; i < orders; i++) {
            book.orders.add(new Order(i, i / 4.0, i % 100, "trader" + i % 10));
        }
        String meeting = "file:" + Files.createTempDirectory("gather").resolve("group");
        Map<String, String> settings = Map.of("MILLRACE_DEVICE", "host");
        Future<Communicator> second = other.submit(() -> Millrace.join(meeting, 1, 2, settings));
        ranks.add(Millrace.join(meeting, 0, 2, settings));
        ranks.add(second.get());
    }

    /** Closes both ranks. */
    @TearDown
    public void tearDown() throws InterruptedException, ExecutionException {
        Future<?> second = other.submit(ranks.get(1)::close);
        ranks.get(0).close();
        second.get();
        other.shutdown();
    }

    /** Gathers the objects of both ranks. */
    @Benchmark
    @OperationsPerInvocation(BATCH)
    public List<Book> allGather() throws InterruptedException, ExecutionException {
        Future<List<Book>> second = other.submit(() -> gathers(ranks.get(1)));
        List<Book> result = gathers(ranks.get(0));
        second.get();
        return result;
    }

    private List<Book> gathers(Communicator communicator) {
        List<Book> result = List.of();
        for (int i = 0; i < BATCH; i++) {
            result = communicator.allGather(book, serializer);
        }
        return result;
    }

    /** Serializes and deserializes one object. */
    @Benchmark
    public Book alone() {
        return serializer.deserialize(serializer.serialize(book));
    }
}
