import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * Runs jextract over {@code headers/} and compares the result with {@code src/generated/java}, or replaces it.
 *
 * <p>{@code mvn -Pjextract} starts it in the repository's root, with two system properties. {@code jextract.home} is
 * jextract's directory; if it is empty, JEXTRACT_HOME and PATH are searched. {@code jextract.update} selects
 * replacement. Two other properties need no jextract. {@code jextract.inputs} compares the hash of the inputs, and
 * checks that {@link #changed} changes nothing in the checked-in files. {@code jextract.again} applies {@link #changed}
 * to the checked-in files and renews the hash. It serves after an edit of {@link #changed}, {@code layouts.list} or the
 * headers, if the edit only removes text. Declarations that left the headers must be removed from the files by hand.
 *
 * <p>Each {@code jextract/NAME.args} is one run. It contains its options and the header. {@code jextract/NAME.includes}
 * beside it lists the declarations to include. Without it jextract would also include the C library's declarations.
 * {@code jextract/layouts.list} names the structs of which Java code uses only the layout and the size.
 *
 * <p>{@code src/generated/inputs.sha256} is the hash of the inputs of the checked-in files. A test compares it, so that
 * a machine without jextract also finds a change of an input without a new run of jextract.
 */
final class Regenerate {
    private static final Path ARGUMENT_FILES = Path.of("jextract");
    private static final Path FRESH = Path.of("target", "jextract");
    private static final Path CHECKED_IN = Path.of("src", "generated", "java");
    private static final Path HEADERS = Path.of("headers");
    private static final Path INPUTS = Path.of("src", "generated", "inputs.sha256");
    private static final Path LAYOUTS = ARGUMENT_FILES.resolve("layouts.list");

    public static void main(String[] args) throws IOException, InterruptedException {
        if (Boolean.getBoolean("jextract.inputs")) {
            compare(changed(read(CHECKED_IN)), read(CHECKED_IN));
            compareInputs();
            return;
        }
        if (Boolean.getBoolean("jextract.again")) {
            replace(changed(read(CHECKED_IN)));
            return;
        }
        String jextract = findJextract(System.getProperty("jextract.home", ""));
        deleteTree(FRESH);
        for (Path argumentFile : list(ARGUMENT_FILES, ".args")) {
            run(jextract, argumentFile);
        }
        SortedMap<String, String> fresh = changed(read(FRESH));
        if (Boolean.getBoolean("jextract.update")) {
            replace(fresh);
        } else {
            compare(fresh, read(CHECKED_IN));
            compareInputs();
        }
    }

    private static String findJextract(String home) {
        List<Path> candidates = new ArrayList<>();
        String fromEnvironment = System.getenv("JEXTRACT_HOME");
        if (!home.isEmpty()) {
            candidates.add(Path.of(home, "bin", "jextract"));
        } else if (fromEnvironment != null && !fromEnvironment.isBlank()) {
            candidates.add(Path.of(fromEnvironment, "bin", "jextract"));
        } else {
            for (String directory : System.getenv().getOrDefault("PATH", "").split(File.pathSeparator)) {
                candidates.add(Path.of(directory, "jextract"));
            }
        }
        for (Path candidate : candidates) {
            if (Files.isExecutable(candidate)) {
                return candidate.toString();
            }
        }
        throw fail("no jextract: looked at " + candidates + ". Unpack a build from https://jdk.java.net/jextract/ and"
                + " give its directory with -Djextract.home=DIR or in JEXTRACT_HOME, or put jextract on the PATH.");
    }

    private static void run(String jextract, Path argumentFile) throws IOException, InterruptedException {
        String name = argumentFile.toString().replaceFirst("\\.args$", "");
        // No thread reads the output during the wait. A file cannot fill up as a pipe would.
        Path log = Files.createTempFile("jextract", ".log");
        int exit = new ProcessBuilder(
                        jextract, "@" + argumentFile, "@" + name + ".includes", "--output", FRESH.toString())
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start()
                .waitFor();
        String output = Files.readString(log);
        Files.delete(log);
        if (exit != 0) {
            throw fail(jextract + " with " + argumentFile + " ended with exit status " + exit + ":\n" + output);
        }
    }

    /** Changes jextract's output for this project. A second call changes nothing. */
    private static SortedMap<String, String> changed(SortedMap<String, String> output) throws IOException {
        Set<String> layoutsOnly = new HashSet<>(Files.readAllLines(LAYOUTS));
        output.replaceAll((file, text) -> {
            String used = withoutUnusedMembers(text);
            String type = file.replaceFirst(".*/(.*)\\.java", "$1");
            String members = layoutsOnly.contains(type) ? withLayoutOnly(used) : used;
            return withLibraryOpenedLate(withHandlesMadeLate(forRelease22(members)));
        });
        return output;
    }

    /**
     * Removes Javadoc, which repeats the declarations of {@code headers/}. Removes each function's handle and address,
     * and jextract's trace of calls. No code of this project uses them.
     */
    private static String withoutUnusedMembers(String text) {
        return text.replaceAll("(?ms)^ *+/\\*\\*.*?\\*/\n", "")
                .replaceAll("(?m)^    public static \\w+ \\w+\\$(handle|address)\\(\\) \\{\n.*\n    }\n\n", "")
                .replaceAll(" *+if \\(TRACE_DOWNCALLS\\) \\{\n.*\n *}\n", "")
                .replaceAll("(?s)    static final boolean TRACE_DOWNCALLS.*?\n    }\n\n", "");
    }

    /** Keeps the layout and the size of a struct. Removes its fields' accessors, its allocation and nested types. */
    private static String withLayoutOnly(String text) {
        return text.replaceFirst(
                "(?s)(\n    public static final GroupLayout layout\\(\\) \\{.*?\n    }\n).*"
                        + "(\n    public static long sizeof\\(\\)[^\n]*\n).*",
                "$1$2}\n");
    }

    /**
     * Makes jextract's output compile with {@code --release 22}. SymbolLookup.findOrThrow was added in Java 23. A
     * static initializer does not wrap the error that is thrown instead.
     */
    private static String forRelease22(String text) {
        return text.replaceAll(
                "SYMBOL_LOOKUP\\.findOrThrow\\((\"[^\"]*\")\\)",
                "SYMBOL_LOOKUP.find($1)\n"
                        + "            .orElseThrow(() -> new UnsatisfiedLinkError(\"no loaded library has \" + $1))");
    }

    /**
     * Creates the handle of an array's elements at its first use, and not with the class of the layout. The JVM takes
     * milliseconds to compile each handle, and a plugin's user waits for that.
     */
    private static String withHandlesMadeLate(String text) {
        return text.replaceAll(
                        "    private static final (VarHandle|MethodHandle) (\\w+\\$ELEM)_HANDLE = ([^;]*);",
                        "    private static final class $2 {\n        static final $1 HANDLE = $3;\n    }")
                .replaceAll("(\\w+\\$ELEM)_HANDLE\\b", "$1.HANDLE");
    }

    /**
     * Opens a library at the first use of one of its functions. Types and constants, and their checks, then work
     * without it.
     */
    private static String withLibraryOpenedLate(String text) {
        return text.replaceAll(
                "SYMBOL_LOOKUP = (SymbolLookup\\.libraryLookup[^;]*);",
                "SYMBOL_LOOKUP = name -> $1\n            .find(name);");
    }

    private static void compareInputs() throws IOException {
        if (!Files.readString(INPUTS).strip().equals(inputs())) {
            throw fail("headers/ or jextract/ changed since " + CHECKED_IN + " was generated: mvn -Pjextract"
                    + " -Djextract.update");
        }
    }

    /**
     * Returns the SHA-256 of all inputs: names and texts of the headers, arguments, includes and this program. Comments
     * and white space do not count, because they do not change the output.
     */
    private static String inputs() throws IOException {
        List<Path> files = new ArrayList<>(list(HEADERS, ".h"));
        files.addAll(list(ARGUMENT_FILES, ""));
        StringBuilder text = new StringBuilder();
        for (Path file : files) {
            if (Files.isRegularFile(file)) {
                String code = Files.readString(file).replaceAll("(?s)/\\*.*?\\*/|//[^\n]*", " ");
                text.append(file).append(' ').append(code.strip().replaceAll("\\s+", " ")).append('\n');
            }
        }
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            return HexFormat.of().formatHex(digest.digest(text.toString().getBytes(StandardCharsets.UTF_8)));
        } catch (NoSuchAlgorithmException absent) {
            throw new IllegalStateException(absent);
        }
    }

    private static void compare(SortedMap<String, String> fresh, SortedMap<String, String> checkedIn) {
        List<String> drift = new ArrayList<>();
        for (String file : fresh.keySet()) {
            if (!checkedIn.containsKey(file)) {
                drift.add(file + " is missing");
            } else if (!checkedIn.get(file).equals(fresh.get(file))) {
                drift.add(file + " differs");
            }
        }
        for (String file : checkedIn.keySet()) {
            if (!fresh.containsKey(file)) {
                drift.add(file + " is not generated (any more)");
            }
        }
        if (!drift.isEmpty()) {
            throw fail(CHECKED_IN + " is not what headers/ and jextract/ give:\n  " + String.join("\n  ", drift)
                    + "\nTo take over what they give: mvn -Pjextract -Djextract.update");
        }
        System.out.println("jextract: " + CHECKED_IN + " is up to date, " + fresh.size() + " files");
    }

    private static void replace(SortedMap<String, String> fresh) throws IOException {
        deleteTree(CHECKED_IN);
        for (var entry : fresh.entrySet()) {
            Path file = CHECKED_IN.resolve(entry.getKey());
            Files.createDirectories(file.getParent());
            Files.writeString(file, entry.getValue());
        }
        Files.writeString(INPUTS, inputs() + "\n");
        System.out.println("jextract: wrote " + fresh.size() + " files to " + CHECKED_IN);
    }

    /** Returns the relative path and the content of every Java file below a directory. */
    private static SortedMap<String, String> read(Path directory) throws IOException {
        SortedMap<String, String> texts = new TreeMap<>();
        for (Path file : list(directory, ".java")) {
            texts.put(directory.relativize(file).toString().replace(File.separatorChar, '/'), Files.readString(file));
        }
        return texts;
    }

    private static List<Path> list(Path directory, String ending) throws IOException {
        if (!Files.isDirectory(directory)) {
            return List.of();
        }
        try (Stream<Path> files = Files.walk(directory)) {
            return files.filter(file -> file.toString().endsWith(ending)).sorted().toList();
        }
    }

    private static void deleteTree(Path directory) throws IOException {
        if (Files.exists(directory)) {
            try (Stream<Path> files = Files.walk(directory)) {
                for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(file);
                }
            }
        }
    }

    private static RuntimeException fail(String message) {
        System.err.println("jextract: " + message);
        System.exit(1);
        return new IllegalStateException(message);
    }

    private Regenerate() {
    }
}
