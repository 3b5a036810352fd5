package org.millrace.fuzz;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.io.TempDir;

/**
 * A second copy of the library and its tests in this JVM, with one changed text in one source file. The rest of the
 * copy is the compiled original.
 */
final class PlantedBug {

    private static final Path SOURCES = Path.of("src", "main", "java");
    private static final String OURS = "org.millrace.";

    private final Path folder;
    private final Path classes;

    /**
     * Plants a bug.
     *
     * @param folder empty folder for the generated files
     * @param source path under {@code src/main/java/org/millrace}
     * @param right  text that the source contains exactly once
     * @param wrong  replacement of that text
     */
    PlantedBug(Path folder, String source, String right, String wrong) throws IOException {
        this.folder = folder;
        classes = folder.resolve("classes");
        Path file = Path.of("org", "millrace").resolve(source);
        String text = Files.readString(SOURCES.resolve(file));
        assertEquals(2, text.split(Pattern.quote(right), -1).length, () -> source + " has not once: " + right);
        Path changed = folder.resolve("source").resolve(file);
        Files.createDirectories(changed.getParent());
        Files.writeString(changed, text.replace(right, wrong));
        StringWriter said = new StringWriter();
        int status = ToolProvider.findFirst("javac")
                .orElseThrow()
                .run(new PrintWriter(said), new PrintWriter(said), "-proc:none", "-Xlint:none", "-nowarn", "-d",
                        classes.toString(), "-cp", System.getProperty("java.class.path"), changed.toString());
        assertEquals(0, status, said.toString());
    }

    /** Returns the exception that a test throws when it runs with the changed class; null if the test does not fail. */
    @Nullable
    Throwable foundBy(Class<?> test, String method) throws Exception {
        ClassLoader loader = new Copy(test.getClassLoader());
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(loader);
        try {
            Class<?> copied = loader.loadClass(test.getName());
            var constructor = copied.getDeclaredConstructor();
            constructor.setAccessible(true);
            Object instance = constructor.newInstance();
            for (Field field : copied.getDeclaredFields()) {
                if (field.isAnnotationPresent(TempDir.class)) {
                    field.setAccessible(true);
                    field.set(instance, Files.createDirectories(folder.resolve(field.getName())));
                }
            }
            Method found = copied.getDeclaredMethod(method);
            found.setAccessible(true);
            found.invoke(instance);
            return null;
        } catch (InvocationTargetException e) {
            return e.getCause();
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    /**
     * Loads all classes of Millrace again, not only the changed class. Otherwise the changed class could not access
     * package-private members of the other classes.
     */
    private final class Copy extends ClassLoader {

        Copy(ClassLoader original) {
            super(original);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith(OURS)) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                return loaded != null ? loaded : define(name);
            }
        }

        private Class<?> define(String name) throws ClassNotFoundException {
            String file = name.replace('.', '/') + ".class";
            Path changed = classes.resolve(file);
            try (InputStream in =
                    Files.exists(changed) ? Files.newInputStream(changed) : getParent().getResourceAsStream(file)) {
                if (in == null) {
                    throw new ClassNotFoundException(name);
                }
                byte[] bytes = in.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }
}
