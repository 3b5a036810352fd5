package org.millrace.cuda;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.annotation.Annotation;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;

/**
 * Runs the tests of a class in a separate class loader. A native library is bound once per class loader, so one JVM can
 * test several stand-ins and the real library. All methods of one test class share a class loader. A test class's
 * constructor must do nothing, because JUnit calls it in the usual class loader.
 */
public final class OwnClassLoader implements InvocationInterceptor {

    private static final ExtensionContext.Namespace NAMESPACE = ExtensionContext.Namespace.create(OwnClassLoader.class);

    @Override
    public void interceptBeforeEachMethod(Invocation<Void> invocation, ReflectiveInvocationContext<Method> method,
            ExtensionContext context) {
        invocation.skip();
    }

    @Override
    public void interceptAfterEachMethod(Invocation<Void> invocation, ReflectiveInvocationContext<Method> method,
            ExtensionContext context) {
        invocation.skip();
    }

    @Override
    public void interceptTestMethod(Invocation<Void> invocation, ReflectiveInvocationContext<Method> method,
            ExtensionContext context) throws Throwable {
        invocation.skip();
        ExtensionContext.Store store = context.getParent().orElseThrow().getStore(NAMESPACE);
        ClassLoader own = store.getOrComputeIfAbsent("loader",
                key -> new ProjectLoader(OwnClassLoader.class.getClassLoader()), ClassLoader.class);
        Class<?> test = own.loadClass(method.getTargetClass().getName());
        var constructor = test.getDeclaredConstructor();
        constructor.setAccessible(true);
        Object instance = constructor.newInstance();
        try {
            callAll(instance, BeforeEach.class);
            call(instance, test.getDeclaredMethod(method.getExecutable().getName()));
        } finally {
            callAll(instance, AfterEach.class);
        }
    }

    private static void callAll(Object instance, Class<? extends Annotation> annotation) throws Throwable {
        for (Method method : instance.getClass().getDeclaredMethods()) {
            if (method.isAnnotationPresent(annotation)) {
                call(instance, method);
            }
        }
    }

    private static void call(Object instance, Method method) throws Throwable {
        method.setAccessible(true);
        try {
            method.invoke(instance);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }

    /** Defines the project's classes itself and delegates all others to its parent. */
    private static final class ProjectLoader extends ClassLoader {

        ProjectLoader(ClassLoader parent) {
            super(parent);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("org.millrace.")) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                return loaded != null ? loaded : define(name);
            }
        }

        private Class<?> define(String name) throws ClassNotFoundException {
            try (InputStream in = getParent().getResourceAsStream(name.replace('.', '/') + ".class")) {
                if (in == null) {
                    throw new ClassNotFoundException(name);
                }
                byte[] bytes = in.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException unreadable) {
                throw new UncheckedIOException(unreadable);
            }
        }
    }
}
