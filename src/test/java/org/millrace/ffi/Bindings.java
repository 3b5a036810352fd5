package org.millrace.ffi;

import java.io.IOException;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * jextract's output for one header, found by reflection on the classes. This class contains no list of names.
 *
 * @param header  the header, relative to {@code headers/}
 * @param symbols class with the header's functions and constants
 * @param types   the package's other classes: structs, unions, typedefs, function pointers
 */
record Bindings(String header, Class<?> symbols, List<Class<?>> types) {
    private static final Path ARGUMENT_FILES = Path.of("jextract");

    /** Returns the bindings of each argument file in {@code jextract/}. */
    static List<Bindings> all() throws IOException, ReflectiveOperationException, URISyntaxException {
        List<Bindings> all = new ArrayList<>();
        for (Path file : listed(ARGUMENT_FILES, ".args")) {
            all.add(of(Files.readString(file).strip().split("\\s+")));
        }
        return all;
    }

    private static Bindings of(String[] arguments)
            throws IOException, ReflectiveOperationException, URISyntaxException {
        List<String> words = List.of(arguments);
        String targetPackage = words.get(words.indexOf("--target-package") + 1);
        String symbolsName = words.get(words.indexOf("--header-class-name") + 1);
        Class<?> symbols = Class.forName(targetPackage + "." + symbolsName);
        Path classes = Path.of(symbols.getProtectionDomain().getCodeSource().getLocation().toURI());
        List<Class<?>> types = new ArrayList<>();
        for (Path file : listed(classes.resolve(targetPackage.replace('.', '/')), ".class")) {
            String name = file.getFileName().toString().replace(".class", "");
            if (!name.contains("$") && !name.equals(symbolsName)) {
                types.add(Class.forName(targetPackage + "." + name));
            }
        }
        return new Bindings(words.getLast().replaceFirst("^headers/", ""), symbols, types);
    }

    private static List<Path> listed(Path directory, String ending) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> file.toString().endsWith(ending)).sorted().toList();
        }
    }

    /** Returns the layouts of structs, unions and their aliases, by name. */
    SortedMap<String, GroupLayout> groups() throws ReflectiveOperationException {
        SortedMap<String, GroupLayout> groups = new TreeMap<>();
        for (Class<?> type : types) {
            if (isFunctionPointer(type)) {
                continue;
            }
            groups.put(type.getSimpleName(), (GroupLayout) type.getMethod("layout").invoke(null));
        }
        return groups;
    }

    /**
     * Returns the values of enumerators and macros: Byte, Short, Integer, Long, Float or Double, like the result of the
     * generated method.
     */
    SortedMap<String, Number> constants() throws ReflectiveOperationException {
        SortedMap<String, Number> constants = new TreeMap<>();
        for (Method method : symbols.getMethods()) {
            boolean constant = Modifier.isStatic(method.getModifiers()) && method.getParameterCount() == 0
                    && !method.getName().contains("$") && !functions().containsKey(method.getName());
            if (constant) {
                constants.put(method.getName(), (Number) method.invoke(null));
            }
        }
        return constants;
    }

    /** Returns the number of parameters of each function. */
    SortedMap<String, Integer> functions() {
        SortedMap<String, Integer> functions = new TreeMap<>();
        for (Method method : symbols.getMethods()) {
            try {
                symbols.getMethod(method.getName() + "$descriptor");
                functions.put(method.getName(), method.getParameterCount());
            } catch (NoSuchMethodException notAFunction) {
                continue;
            }
        }
        return functions;
    }

    /** Returns the number of parameters of each function pointer, by its name ("type", or "struct.field"). */
    SortedMap<String, Integer> functionPointers() throws ReflectiveOperationException {
        SortedMap<String, Integer> pointers = new TreeMap<>();
        for (Class<?> type : types) {
            if (isFunctionPointer(type)) {
                pointers.put(type.getSimpleName(), parameters(type));
            }
            for (Class<?> nested : type.getDeclaredClasses()) {
                if (isFunctionPointer(nested)) {
                    pointers.put(type.getSimpleName() + "." + nested.getSimpleName(), parameters(nested));
                }
            }
        }
        return pointers;
    }

    /** Returns typedefs of pointers and of primitive types. */
    SortedMap<String, ValueLayout> scalarTypes() throws ReflectiveOperationException {
        SortedMap<String, ValueLayout> scalars = new TreeMap<>();
        for (Field field : symbols.getFields()) {
            if (field.getDeclaringClass() == symbols) {
                scalars.put(field.getName(), (ValueLayout) field.get(null));
            }
        }
        return scalars;
    }

    private static boolean isFunctionPointer(Class<?> type) {
        return Stream.of(type.getDeclaredClasses()).anyMatch(nested -> nested.getSimpleName().equals("Function"));
    }

    private static int parameters(Class<?> functionPointer) {
        for (Class<?> nested : functionPointer.getDeclaredClasses()) {
            if (nested.getSimpleName().equals("Function")) {
                return nested.getMethods()[0].getParameterCount();
            }
        }
        throw new AssertionError(functionPointer + " has no interface Function");
    }
}
