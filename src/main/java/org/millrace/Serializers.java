package org.millrace;

import java.io.ByteArrayOutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InaccessibleObjectException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiConsumer;
import java.util.function.Function;

/**
 * Serializers by type. The parts of a record or list are stored one after another, each as its number of bytes (4
 * bytes, big-endian) and its bytes. Only the declared types are created, so the bytes of another rank cannot choose a
 * class.
 */
final class Serializers {

    private static final Map<Type, Serializer<?>> SIMPLE = new HashMap<>();
    static {
        simple(Boolean.class, boolean.class, 1, (bytes, value) -> bytes.put((byte) (value ? 1 : 0)),
                bytes -> bytes.get() != 0);
        simple(Byte.class, byte.class, Byte.BYTES, ByteBuffer::put, ByteBuffer::get);
        simple(Short.class, short.class, Short.BYTES, ByteBuffer::putShort, ByteBuffer::getShort);
        simple(Character.class, char.class, Character.BYTES, ByteBuffer::putChar, ByteBuffer::getChar);
        simple(Integer.class, int.class, Integer.BYTES, ByteBuffer::putInt, ByteBuffer::getInt);
        simple(Long.class, long.class, Long.BYTES, ByteBuffer::putLong, ByteBuffer::getLong);
        simple(Float.class, float.class, Float.BYTES, ByteBuffer::putFloat, ByteBuffer::getFloat);
        simple(Double.class, double.class, Double.BYTES, ByteBuffer::putDouble, ByteBuffer::getDouble);
        SIMPLE.put(String.class, Serializer.STRING);
        SIMPLE.put(byte[].class, Serializer.<byte[]>of(Function.identity(), Function.identity()));
    }

    private Serializers() {}

    private static <T> void simple(Class<T> type, Class<?> primitive, int size, BiConsumer<ByteBuffer, T> put,
            Function<ByteBuffer, T> get) {
        Serializer<T> serializer = Serializer.of(value -> {
            ByteBuffer bytes = ByteBuffer.allocate(size);
            put.accept(bytes, value);
            return bytes.array();
        }, bytes -> {
            if (bytes.length != size) {
                throw malformed(type.getSimpleName() + " has " + size + " bytes, and " + bytes.length + " were sent");
            }
            return get.apply(ByteBuffer.wrap(bytes));
        });
        SIMPLE.put(type, serializer);
        SIMPLE.put(primitive, serializer);
    }

    private static IllegalArgumentException malformed(String what) {
        return new IllegalArgumentException(what + ": do all ranks use the same serializer?");
    }

    static <T> Serializer<List<T>> list(Serializer<T> elements) {
        return Serializer.of(list -> join(list.stream().map(elements::serialize).toList()),
                bytes -> split(bytes).stream().map(elements::deserialize).toList());
    }

    private static byte[] join(List<byte[]> parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            all.writeBytes(ByteBuffer.allocate(Integer.BYTES).putInt(part.length).array());
            all.writeBytes(part);
        }
        return all.toByteArray();
    }

    private static List<byte[]> split(byte[] bytes) {
        List<byte[]> parts = new ArrayList<>();
        ByteBuffer rest = ByteBuffer.wrap(bytes);
        while (rest.hasRemaining()) {
            int length = rest.remaining() < Integer.BYTES ? -1 : rest.getInt();
            if (length < 0 || length > rest.remaining()) {
                throw malformed("the " + bytes.length + " bytes of a record or list end within a part");
            }
            byte[] part = new byte[length];
            rest.get(part);
            parts.add(part);
        }
        return parts;
    }

    /** @param owner name of the class or the record component that has the type, for messages */
    static Serializer<?> of(Type type, String owner, Map<Type, Serializer<?>> known) {
        Serializer<?> simple = SIMPLE.getOrDefault(type, known.get(type));
        if (simple != null) {
            return simple;
        }
        if (type instanceof Class<?> named && named.isEnum()) {
            return ofEnum(named);
        }
        if (type instanceof Class<?> named && named.isRecord()) {
            return new OfRecord<>(named.asSubclass(Record.class), known);
        }
        if (type instanceof ParameterizedType generic && generic.getRawType() == List.class) {
            return list(of(generic.getActualTypeArguments()[0], owner, known));
        }
        throw new IllegalArgumentException(owner + ": " + type.getTypeName()
                + " has no serializer. There are serializers"
                + " for primitives, String, byte[], enums, records, and lists of these. For another type, or a record"
                + " that contains it, use Serializer.of(toBytes, fromBytes)");
    }

    private static Serializer<?> ofEnum(Class<?> type) {
        return Serializer.<Enum<?>>of(value -> value.name().getBytes(StandardCharsets.UTF_8), bytes -> {
            String name = new String(bytes, StandardCharsets.UTF_8);
            return (Enum<?>) Arrays.stream(type.getEnumConstants())
                    .filter(constant -> ((Enum<?>) constant).name().equals(name))
                    .findFirst()
                    .orElseThrow(() -> malformed(type.getSimpleName() + " has no constant '" + name + "'"));
        });
    }

    /** Serializer of a record, by its accessors and its canonical constructor. */
    private static final class OfRecord<R extends Record> implements Serializer<R> {

        private final Class<R> type;
        private final Constructor<R> constructor;
        private final List<Method> accessors = new ArrayList<>();
        private final List<Serializer<Object>> serializers = new ArrayList<>();

        @SuppressWarnings("unchecked") // each serializer receives only values of its component's type
        OfRecord(Class<R> type, Map<Type, Serializer<?>> known) {
            this.type = type;
            known.put(type, this); // stored first, because a component can have the type of the record
            try {
                RecordComponent[] components = type.getRecordComponents();
                constructor = type.getDeclaredConstructor(
                        Arrays.stream(components).map(RecordComponent::getType).toArray(Class<?>[]::new));
                constructor.setAccessible(true);
                for (RecordComponent component : components) {
                    component.getAccessor().setAccessible(true);
                    accessors.add(component.getAccessor());
                    serializers.add((Serializer<Object>) of(component.getGenericType(),
                            type.getSimpleName() + "." + component.getName(), known));
                }
            } catch (InaccessibleObjectException | NoSuchMethodException closed) {
                throw new IllegalArgumentException("the record " + type.getName() + " is not accessible: add 'opens "
                        + type.getPackageName() + " to org.millrace;' to its module-info.java", closed);
            }
        }

        @Override
        public byte[] serialize(R value) {
            List<byte[]> parts = new ArrayList<>();
            for (int i = 0; i < serializers.size(); i++) {
                Method accessor = accessors.get(i);
                parts.add(serializers.get(i)
                        .serialize(Objects.requireNonNull(call(() -> accessor.invoke(value)),
                                () -> type.getSimpleName() + "." + accessor.getName() + " is null")));
            }
            return join(parts);
        }

        @Override
        public R deserialize(byte[] bytes) {
            List<byte[]> parts = split(bytes);
            if (parts.size() != serializers.size()) {
                throw malformed("the record " + type.getSimpleName() + " has " + serializers.size()
                        + " components, and " + parts.size() + " were sent");
            }
            Object[] values = new Object[parts.size()];
            Arrays.setAll(values, i -> serializers.get(i).deserialize(parts.get(i)));
            return call(() -> constructor.newInstance(values));
        }

        /** A call by reflection. */
        private interface Call<T> {
            T make() throws ReflectiveOperationException;
        }

        private <T> T call(Call<T> reflective) {
            try {
                return reflective.make();
            } catch (InvocationTargetException thrown) {
                throw new IllegalArgumentException(
                        "the record " + type.getSimpleName() + " refuses its values: " + thrown.getCause(),
                        thrown.getCause());
            } catch (ReflectiveOperationException impossible) {
                throw new IllegalStateException(impossible);
            }
        }
    }
}
