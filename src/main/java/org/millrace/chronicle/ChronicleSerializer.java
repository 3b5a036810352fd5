package org.millrace.chronicle;

import java.nio.BufferUnderflowException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.bytes.BytesMarshallable;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.Serializer;

/**
 * A serializer of objects that implement {@code writeMarshallable} and {@code readMarshallable} of Chronicle Bytes.
 *
 * <p>
 * Callable from any thread. The serializer reuses one buffer, which grows to the size of the largest object. A call
 * then allocates only its result. A call creates a second buffer if another thread, or an enclosing object, uses the
 * first buffer. An object must not keep the buffer after a call.
 *
 * @param <T> type of the objects
 */
public final class ChronicleSerializer<T extends BytesMarshallable> implements Serializer<T> {

    private final Supplier<? extends T> constructor;
    /** The buffer, which a call takes and returns; null while a call owns the buffer. */
    private final AtomicReference<@Nullable Bytes<byte[]>> idle = new AtomicReference<>(newBuffer());

    /**
     * Creates a serializer.
     *
     * @param constructor constructor of the objects that {@link #deserialize} fills, for instance {@code Quote::new}
     * @throws MillraceException if this JVM cannot run Chronicle Bytes
     */
    public ChronicleSerializer(Supplier<? extends T> constructor) {
        this.constructor = constructor;
    }

    private static Bytes<byte[]> newBuffer() {
        try {
            Bytes<byte[]> buffer = Bytes.allocateElasticOnHeap();
            buffer.singleThreadedCheckDisabled(true); // several threads use the buffer, one after another
            return buffer;
        } catch (LinkageError broken) {
            throw new MillraceException("Chronicle Bytes cannot start: it requires sun.misc.Unsafe, which"
                    + " --sun-misc-unsafe-memory-access=deny forbids, and the jars chronicle-core, posix and slf4j-api",
                    broken);
        }
    }

    private Bytes<byte[]> take() {
        Bytes<byte[]> buffer = idle.getAndSet(null);
        return buffer == null ? newBuffer() : buffer.clear();
    }

    @Override
    public byte[] serialize(T object) {
        Bytes<byte[]> buffer = take();
        try {
            object.writeMarshallable(buffer);
        } catch (AssertionError thrown) { // thrown by Chronicle's own writeMarshallable
            if (thrown.getCause() instanceof IllegalAccessException) {
                throw new IllegalArgumentException(object.getClass().getSimpleName() + " has fields that reflection"
                        + " cannot access: implement writeMarshallable and readMarshallable", thrown);
            }
            throw thrown;
        }
        byte[] bytes = buffer.toByteArray();
        idle.set(buffer);
        return bytes;
    }

    /** @throws IllegalArgumentException if the object reads more or fewer bytes than the array contains */
    @Override
    public T deserialize(byte[] bytes) {
        T object = constructor.get();
        Bytes<byte[]> buffer = take();
        buffer.write(bytes);
        BufferUnderflowException tooShort = null;
        try {
            object.readMarshallable(buffer);
        } catch (BufferUnderflowException thrown) {
            tooShort = thrown;
        }
        if (tooShort != null || buffer.readRemaining() > 0) {
            throw new IllegalArgumentException(
                    object.getClass().getSimpleName() + " reads " + (tooShort == null ? "fewer" : "more") + " than the "
                            + bytes.length + " bytes of the object: do all ranks use the same serializer?",
                    tooShort);
        }
        idle.set(buffer);
        return object;
    }
}
