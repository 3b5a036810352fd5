package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Array;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BinaryOperator;
import java.util.function.Consumer;
import java.util.function.DoubleBinaryOperator;
import java.util.function.Function;
import java.util.function.LongBinaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.Device;
import org.millrace.DeviceStream;
import org.millrace.DlpackTensor;
import org.millrace.Event;
import org.millrace.JoinBuilder;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.Plan;
import org.millrace.RankProgram;
import org.millrace.ReduceFunction;
import org.millrace.ReduceOp;
import org.millrace.Serializer;

/** Null arguments of the public API. Millrace's own message names the argument that is null. */
class NullArgumentsTest extends EngineFixture {

    private final Map<Class<?>, Object> values = new HashMap<>();

    private <T> void value(Class<T> type, T value) {
        values.put(type, value);
    }

    private void setValues(Communicator communicator, DeviceStream stream, Arena arena) {
        value(Object.class, "");
        value(String.class, "");
        value(Class.class, String.class);
        value(List.class, List.of(""));
        value(Map.class, Map.of());
        value(Arena.class, arena);
        value(Duration.class, Duration.ZERO);
        value(Runnable.class, () -> {});
        value(Function.class, value -> value);
        value(BinaryOperator.class, (one, _) -> one);
        value(LongBinaryOperator.class, Long::sum);
        value(DoubleBinaryOperator.class, Double::sum);
        value(Consumer.class, _ -> {});
        value(MemorySegment.class, communicator.device().allocate(16, arena));
        value(ByteBuffer.class, ByteBuffer.allocate(16));
        value(FloatBuffer.class, FloatBuffer.allocate(1));
        value(DoubleBuffer.class, DoubleBuffer.allocate(1));
        value(IntBuffer.class, IntBuffer.allocate(1));
        value(LongBuffer.class, LongBuffer.allocate(1));
        value(DataType.class, DataType.FLOAT32);
        value(DeviceStream.class, stream);
        value(Event.class, communicator.device().newEvent());
        value(Operand.class, Operand.of(new int[1]));
        value(RankProgram.class, _ -> {});
        value(ReduceFunction.class, ReduceFunction.BITWISE_OR);
        value(ReduceOp.class, ReduceOp.MAX);
        value(Serializer.class, Serializer.STRING);
        value(boolean.class, false);
        value(double.class, 0.0);
        value(int.class, 0);
        value(long.class, 1L);
    }

    private Object valueOf(Class<?> type) {
        Object value = values.get(type);
        if (value == null && type.isArray()) {
            Object array = Array.newInstance(type.componentType(), 1);
            if (values.containsKey(type.componentType())) {
                Array.set(array, 0, valueOf(type.componentType()));
            }
            return array;
        }
        if (value == null) {
            throw new AssertionError("this test needs a value of " + type);
        }
        return value;
    }

    /**
     * Calls a type's methods with null for one argument at a time. Returns the calls that were accepted, or whose
     * exception does not name the null argument.
     */
    private List<String> unnamed(Class<?> type, Object target) throws Exception {
        List<String> unnamed = new ArrayList<>();
        for (Method method : type.getMethods()) {
            if (method.getName().equals("equals") || method.getDeclaringClass() == Object.class
                    || target == null && !Modifier.isStatic(method.getModifiers()) || method.isBridge()) {
                continue;
            }
            method.setAccessible(true);
            Class<?>[] types = method.getParameterTypes();
            for (int at = 0; at < types.length; at++) {
                if (types[at].isPrimitive()
                        || method.getAnnotatedParameterTypes()[at].isAnnotationPresent(Nullable.class)) {
                    continue;
                }
                Object[] arguments = new Object[types.length];
                for (int i = 0; i < types.length; i++) {
                    arguments[i] = i == at ? null : valueOf(types[i]);
                }
                String problem = problem(method, target, arguments);
                if (problem != null) {
                    unnamed.add(method.toGenericString() + ", argument " + at + ": " + problem);
                }
            }
        }
        return unnamed;
    }

    private static @Nullable String problem(Method method, Object target, Object[] arguments)
            throws IllegalAccessException {
        try {
            method.invoke(target, arguments);
            return "accepted";
        } catch (InvocationTargetException e) {
            String message = String.valueOf(e.getCause().getMessage());
            boolean isNamed = message.contains(" null") && !message.contains("because ")
                    && !message.contains("the argument is null");
            return isNamed ? null : e.getCause().toString();
        }
    }

    @Test
    void eachNullArgumentIsNamed() throws Exception {
        List<String> unnamed = new ArrayList<>();
        EngineGroup.ranks(directory, 1, EngineGroup.settings(), (communicator, stream, arena) -> {
            setValues(communicator, stream, arena);
            unnamed.addAll(unnamed(Communicator.class, communicator));
            unnamed.addAll(unnamed(Device.class, communicator.device()));
            unnamed.addAll(unnamed(DeviceStream.class, stream));
            unnamed.addAll(unnamed(Event.class, communicator.device().newEvent()));
            unnamed.addAll(unnamed(Operand.class, Operand.of(new int[1])));
            try (Plan plan = communicator.plan(stream, () -> {})) {
                unnamed.addAll(unnamed(Plan.class, plan));
            }
            unnamed.addAll(unnamed(Serializer.class, null));
            unnamed.addAll(unnamed(ReduceFunction.class, ReduceFunction.BITWISE_OR));
            unnamed.addAll(unnamed(JoinBuilder.class, Millrace.builder()));
            unnamed.addAll(unnamed(Millrace.class, null));
            unnamed.addAll(unnamed(DlpackTensor.class, null));
        });
        assertEquals("", String.join("\n", unnamed));
    }
}
