package org.millrace.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.millrace.Operation;
import org.millrace.ffi.nccl.nccl_h;

/**
 * The declarations of release 2.30.7's {@code nccl.h} are compared with the declarations that Millrace binds. The list
 * beside this test was generated from that header. If NCCL's source is available, {@link NcclHeadersTest} compares the
 * list with the header.
 */
class NcclDeclarationsTest {

    static final String RELEASE = "2.30.7";
    private static final String LIST = "nccl-" + RELEASE + ".txt";
    private static final String INITIALIZER = "a macro for C that NcclConfig and NcclGroup do the work of";
    /** Declarations that are not bound. Each line is a declaration of the list, with the reason. */
    private static final Map<String, String> NOT_BOUND = Map.ofEntries(
            Map.entry("NCCL_SUFFIX", "part of the version that ncclGetVersion does not tell either"),
            Map.entry("NCCL_COMM_NULL", "Java has null"), Map.entry("NCCL_CONFIG_UNDEF_PTR", "Java has null"),
            Map.entry("NCCL_API_MAGIC", "for NCCL's own use, and new in 2.29; MILLRACE_NCCL_CONFIG_MAGIC is its value"),
            Map.entry("NCCL_CONFIG_INITIALIZER", INITIALIZER), Map.entry("NCCL_SIM_INFO_INITIALIZER", INITIALIZER),
            Map.entry("ncclNumOps_dummy", "helps the C compiler to the size of ncclRedOp_t"));
    /** Generated functions without a method in the typed interface. */
    private static final Map<String, String> NOT_TYPED =
            Map.of("ncclBcast", "deprecated by NCCL: NcclCommunicator.broadcast with one buffer for both",
                    "ncclResetDebugInit", "deprecated by NCCL: not supported, and to be removed");
    /**
     * Declarations that Millrace's headers spell in another way than NCCL's headers. {@link AbiProofTest} compares
     * their values.
     */
    private static final Map<String, String> OTHERWISE =
            Map.of("ncclMaxRedOp", "enumerator ncclRedOp_t ncclMaxRedOp = 0x7fffffff>>(32-8*sizeof(ncclRedOp_dummy_t))",
                    "NCCL_CONFIG_UNDEF_INT", "macro NCCL_CONFIG_UNDEF_INT = INT_MIN");

    static List<String> listed() throws IOException {
        try (InputStream list = NcclDeclarationsTest.class.getResourceAsStream(LIST)) {
            return new String(list.readAllBytes(), StandardCharsets.UTF_8).lines().toList();
        }
    }

    /**
     * Returns all declarations of a header, except the names that begin with {@code pnccl}. Such a name is a second
     * name of an NCCL function, for profilers.
     */
    static List<String> declared(String header) {
        SortedMap<String, String> all = HeaderDeclarations.of(header);
        List<String> twins = all.keySet().stream().filter(name -> name.startsWith("pnccl")).toList();
        twins.forEach(twin -> assertEquals(all.get(twin.substring(1)).replaceFirst(" nccl", " pnccl"), all.get(twin)));
        twins.forEach(all::remove);
        return List.copyOf(all.values());
    }

    private static String name(String line) {
        String declaration = line.replaceFirst("^enumerator \\w+ |^\\w+ ", "");
        return declaration.replaceFirst("[ (:].*", "");
    }

    private static SortedMap<String, String> ours() throws IOException {
        SortedMap<String, String> ours = new TreeMap<>();
        for (String header : List.of("types.h", "api.h")) {
            ours.putAll(HeaderDeclarations.of(Files.readString(Path.of("headers", "nccl", header))));
        }
        return ours;
    }

    @Test
    void everyDeclarationIsBoundOrHasAReason() throws Exception {
        SortedMap<String, String> ours = ours();
        List<String> wrong = new ArrayList<>();
        TreeSet<String> names = new TreeSet<>();
        for (String line : listed()) {
            String name = name(line);
            names.add(name);
            String bound = ours.get(name);
            if (NOT_BOUND.containsKey(name) != (bound == null)) {
                wrong.add(bound == null ? "not bound, and nobody says why: " + line : name + " is bound after all");
            } else if (bound != null && !same(line, bound) && !line.equals(OTHERWISE.get(name))) {
                wrong.add("NCCL: " + line + "; here: " + bound);
            }
        }
        assertEquals(List.of(), wrong);
        assertTrue(names.containsAll(NOT_BOUND.keySet()), "what NCCL does not declare: " + NOT_BOUND.keySet());
        assertTrue(names.size() > 160, "too few declarations to judge: " + names.size());
    }

    /** Returns whether two declarations are equal. Numbers are compared by value, so their base is irrelevant. */
    private static boolean same(String theirs, String ours) {
        return theirs.equals(ours) || value(theirs).equals(value(ours))
                && theirs.replaceFirst("=.*", "").equals(ours.replaceFirst("=.*", ""));
    }

    private static Object value(String line) {
        String text = line.substring(line.indexOf('=') + 1).strip();
        try {
            return Long.decode(text);
        } catch (NumberFormatException notOne) {
            return text;
        }
    }

    /** Each function of the header must be in jextract's argument files, and Java code must call it. */
    @Test
    void everyFunctionIsGeneratedAndPartOfTheTypedInterface() throws Exception {
        String functions =
                Files.readString(Path.of("src", "main", "java", "org", "millrace", "nccl", "NcclFunction.java"));
        List<String> wrong = new ArrayList<>();
        int typed = 0;
        for (String line : listed().stream().filter(each -> each.startsWith("function ")).toList()) {
            String name = name(line);
            nccl_h.class.getMethod(name + "$descriptor");
            boolean called = functions.contains("\"" + name + "\"") || isCollective(functions, name);
            typed += called ? 1 : 0;
            if (called == NOT_TYPED.containsKey(name)) {
                wrong.add(
                        name + (called ? " is typed after all" : " has no place in NcclFunction, and nobody says why"));
            }
        }
        assertEquals(List.of(), wrong);
        assertEquals(62, typed, "functions of the typed interface");
    }

    private static boolean isCollective(String functions, String name) {
        return Arrays.stream(Operation.values())
                .anyMatch(operation -> name.equals("nccl" + operation.ncclName())
                        && functions.contains("(Operation." + operation.name()));
    }

    @Test
    void theParserToleratesNothing() {
        List<String> odd = List.of("int variable;", "typedef int (*callback)(int);", "ncclResult_t f(int a) { }");
        odd.forEach(header -> assertFalse(understands(header), header));
        assertTrue(understands("ncclResult_t f(int a);"));
    }

    private static boolean understands(String header) {
        try {
            HeaderDeclarations.of(header);
            return true;
        } catch (IllegalArgumentException refused) {
            return false;
        }
    }
}
