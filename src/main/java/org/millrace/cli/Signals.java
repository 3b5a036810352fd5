package org.millrace.cli;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * Signals of this process call a function, in place of ending it. By {@code sun.misc.Signal} of
 * {@code jdk.unsupported}, the only way that Java has; by reflection, as the compiler warns of it in any other use.
 * Where there is no such module, signals end this process as always.
 */
final class Signals implements AutoCloseable {

    /** SIGQUIT and SIGUSR2 are the JVM's. */
    static final List<String> NAMES = List.of("INT", "TERM", "HUP", "USR1");

    private final List<Runnable> undo = new ArrayList<>();

    /** @param to called on a thread of the JVM with the name of each signal that comes */
    Signals(Consumer<String> to) {
        try {
            Class<?> signal = Class.forName("sun.misc.Signal");
            Class<?> handler = Class.forName("sun.misc.SignalHandler");
            Method handle = signal.getMethod("handle", signal, handler);
            Object ignore = handler.getField("SIG_IGN").get(null);
            for (String name : NAMES) {
                Object number = signal.getConstructor(String.class).newInstance(name);
                Object before = handle.invoke(null, number, handler(handler, () -> to.accept(name)));
                if (before == ignore) {
                    handle.invoke(null, number, before); // as with nohup: so it shall stay
                } else {
                    undo.add(() -> restore(handle, number, before));
                }
            }
        } catch (ReflectiveOperationException absent) {
            // then ranks end with this process
        }
    }

    private static Object handler(Class<?> type, Runnable action) {
        InvocationHandler method = (proxy, called, arguments) -> switch (called.getName()) {
            case "handle" -> {
                action.run();
                yield null;
            }
            case "equals" -> proxy == arguments[0];
            case "hashCode" -> System.identityHashCode(proxy);
            default -> type.getName();
        };
        return Proxy.newProxyInstance(Signals.class.getClassLoader(), new Class<?>[] {type}, method);
    }

    private static void restore(Method handle, Object number, Object before) {
        try {
            handle.invoke(null, number, before);
        } catch (ReflectiveOperationException unexpected) {
            throw new IllegalStateException(unexpected);
        }
    }

    @Override
    public void close() {
        undo.forEach(Runnable::run);
    }
}
