package org.millrace;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.function.Function;
import org.millrace.operation.Required;

/**
 * Converts objects to bytes and back, for the object operations of {@link BlockingOperations}. The library has no
 * default serializer. A default serializer would use Java's own deserialization. Other processes, which send the bytes,
 * could then make this process create any object.
 *
 * @param <T> type of the objects
 */
public interface Serializer<T> {

    /** Serializer of strings, as UTF-8. */
    Serializer<String> STRING =
            of(text -> text.getBytes(StandardCharsets.UTF_8), bytes -> new String(bytes, StandardCharsets.UTF_8));

    /** {@return an object's bytes} */
    byte[] serialize(T object);

    /** {@return the object that another rank serialized to these bytes} */
    T deserialize(byte[] bytes);

    /**
     * {@return a serializer of a type: a boxed primitive, String, byte[], an enum or a record} A record is created by
     * its canonical constructor. Each component of a record has one of the types above or a primitive type, or is a
     * list of values of the types above. No value is null.
     *
     * @param type the class, the same on all ranks
     * @throws IllegalArgumentException if the type, or a component's type, has no serializer, or if a record's package
     *                                  is not open to {@code org.millrace}
     */
    @SuppressWarnings("unchecked") // Serializers.of(type) returns a serializer of this type
    static <T> Serializer<T> of(Class<T> type) {
        Required.argument("Serializer.of", "type", type);
        return (Serializer<T>) Serializers.of(type, type.getSimpleName(), new HashMap<>());
    }

    /** {@return a serializer of lists; a deserialized list is immutable} */
    static <T> Serializer<List<T>> listOf(Serializer<T> elements) {
        return Serializers.list(Required.argument("Serializer.listOf", "serializer", elements));
    }

    /** {@return a serializer that consists of two functions} */
    static <T> Serializer<T> of(Function<? super T, byte[]> toBytes, Function<byte[], ? extends T> fromBytes) {
        Required.argument("Serializer.of", "function toBytes", toBytes);
        Required.argument("Serializer.of", "function fromBytes", fromBytes);
        return new Serializer<>() {

            @Override
            public byte[] serialize(T object) {
                return toBytes.apply(object);
            }

            @Override
            public T deserialize(byte[] bytes) {
                return fromBytes.apply(bytes);
            }
        };
    }
}
