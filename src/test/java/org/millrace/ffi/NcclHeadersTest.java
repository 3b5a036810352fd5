package org.millrace.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.millrace.CCompiler;
import org.millrace.abi.KernelLayout;

/**
 * Compares the declarations in {@code headers/} with NCCL's and CUDA's own headers, if a property names NCCL's headers.
 * The following command names checkouts of NCCL's repository, for any number of releases, and the folder of CUDA's
 * headers:
 *
 * <pre>{@code
 * mvn test -Dtest=NcclHeadersTest -Dmillrace.nccl.sources=nccl-2.28.9:nccl-2.29.7:nccl-2.30.7 -Dmillrace.cuda.headers=/usr/local/cuda/include
 * }</pre>
 *
 * Alternatively, {@code -Dmillrace.nccl.headers=} names an include path with nccl.h and cuda_runtime_api.h. If that
 * path also has NCCL's source, the plugin tables and the structs shared with the device are compared as well. The
 * source consists of {@code src/include}, {@code src/include/plugin} and {@code src}, with the cccl folder of CUDA's
 * headers.
 *
 * <p>
 * Millrace's headers have names that are missing in NCCL's headers. Such names are Millrace's own, or belong to another
 * release. The test prints these names and does not compare them.
 */
class NcclHeadersTest {
    private static final Pattern INCLUDE = Pattern.compile("(?m)^#\\s*include\\s+[\"<](.+?)[\">]");
    private static final Pattern WORD = Pattern.compile("\\w+");
    /** Text that occurs in the headers of only one release. */
    private static final Set<String> VERSION =
            Set.of("NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH", "NCCL_VERSION_CODE", "ncclNumResults");
    private static final List<String> PUBLIC = List.of("nccl.h", "cuda_runtime_api.h");
    private static final List<String> INTERNAL =
            List.of("nccl.h", "comm.h", "nccl_net.h", "nccl_tuner.h", "device/network/unpack/unpack_defs.h");
    /** Headers of GIN's descriptors, for releases that have such descriptors. */
    private static final List<String> GIN = List.of("nccl_device/gin/proxy/gin_proxy_device_host_common.h");
    /**
     * Compiler options. The linker accepts unresolved symbols. Only NCCL's own sources define these symbols, and the
     * program never uses them.
     */
    private static final List<String> FLAGS =
            List.of("-std=gnu++17", "-w", "-DNCCL_OS_LINUX", "-no-pie", "-Wl,--unresolved-symbols=ignore-all");
    /**
     * Structs and unions that have a name in Millrace's headers and none in NCCL's. In NCCL's headers their members
     * belong to the outer struct.
     */
    private static final Pattern UNNAMED = Pattern.compile("\\.(words|piece|schedule|event)(?=[.\\[]|$)");
    /** Padding, and bytes or words in place of bit-fields: C cannot compute the offset of a bit-field. */
    private static final Pattern UNADDRESSABLE =
            Pattern.compile(".*\\.(pad\\d.*|\\w+Flags|channelLo|channelHi|nWarps|chunkGrains)"
                    + "|ncclDevWorkColl\\.schedule(\\.(cbd|collnet))?");

    /** The release that has the device structs of {@code headers/}. */
    private static final String NEWEST = "NCCL 2.30.7";
    /**
     * Structs that are different in earlier releases. Such a difference is no error, because only the emulated device
     * uses these structs. The takeover does not read them.
     */
    private static final Pattern CHANGED = Pattern.compile("(\\w+ )?(ncclDevWorkColl|ncclDevWorkCollReg|ncclRing"
            + "|ncclDevChannel|ncclKernelComm\\.isAllNvlink)(\\W.*)?");
    /**
     * Structs that changed in 2.31. Millrace's headers also have the earlier ones, with {@code _v28} in their names.
     */
    private static final Set<String> FIFO = Set.of("ncclConnFifo", "ncclRecvMem");
    private static final Pattern CODE = Pattern.compile("(?m)^#define NCCL_VERSION_CODE (\\d+)");
    /**
     * Functions with a v4 struct as the last argument. Millrace's struct is the same, but its name differs from NCCL's
     * name.
     */
    private static final Set<String> ALIKE =
            Set.of("ncclProfiler_v5_t.recordEventState", "ncclProfiler_v6_t.recordEventState");

    @TempDir
    static Path made;

    private NcclSource source;
    private List<String> includes;
    private Set<String> known;

    static List<NcclSource> sources() throws IOException {
        List<NcclSource> all = NcclSource.all(made);
        Assumptions.assumeFalse(all.isEmpty(), "neither millrace.nccl.sources nor millrace.nccl.headers is given");
        return all;
    }

    private void read(NcclSource headers) throws IOException {
        source = headers;
        boolean internal = INTERNAL.stream().allMatch(header -> headers.find(header) != null);
        includes = Stream.of(PUBLIC, internal ? INTERNAL : List.<String>of(), internal ? GIN : List.<String>of())
                .flatMap(List::stream)
                .filter(header -> !GIN.contains(header) || headers.find(header) != null)
                .distinct()
                .toList();
        known = new HashSet<>();
        for (String header : includes) {
            assertFalse(headers.find(header) == null,
                    header + " is not on the include path of " + headers + ": " + headers.includes());
            collectWords(headers.find(header), new HashSet<>());
        }
    }

    /** The recorded list of declarations equals the declarations of the header from which it was generated. */
    @ParameterizedTest
    @MethodSource("sources")
    void theListOfDeclarationsMatchesTheHeader(NcclSource headers) throws Exception {
        Assumptions.assumeTrue(headers.name().endsWith(" " + NcclDeclarationsTest.RELEASE), "another release's");
        List<String> theirs = NcclDeclarationsTest.declared(Files.readString(headers.find("nccl.h")))
                .stream()
                .filter(line -> !line.startsWith("macro NCCL_H_"))
                .toList();
        Path fresh = Files.write(Path.of("target", "nccl-declarations.txt"), theirs);
        assertEquals(theirs, NcclDeclarationsTest.listed(), "the list is to be " + fresh);
    }

    @ParameterizedTest
    @MethodSource("sources")
    void layoutsAndConstantsMatchTheHeaders(NcclSource headers, @TempDir Path directory) throws Exception {
        read(headers);
        Set<String> unknown = new TreeSet<>();
        AbiProbe probe = new AbiProbe(field -> theirSpelling(field, unknown));
        Matcher code = CODE.matcher(Files.readString(source.find("nccl.h")));
        assertTrue(code.find(), "no version in nccl.h");
        boolean earlier = KernelLayout.ofRelease(Integer.parseInt(code.group(1))) == KernelLayout.V28;
        Map<String, Layout> layouts = AbiProofTest.layouts();
        layouts.forEach((name, layout) -> {
            if (known.contains(name)) {
                probe.group(name, earlier && FIFO.contains(name) ? layouts.get(name + "_v28") : layout);
            } else {
                unknown.add(name);
            }
        });
        for (Bindings part : Bindings.all()) {
            for (var constant : part.constants().entrySet()) {
                if (known.contains(constant.getKey()) && !VERSION.contains(constant.getKey())) {
                    probe.value(constant.getKey(), constant.getValue());
                } else {
                    unknown.add(constant.getKey());
                }
            }
        }
        Map<String, String> theirs = CCompiler.answers(compile(directory, probe.source(prologue())));
        List<String> differences = new ArrayList<>();
        Set<String> changed = new TreeSet<>();
        probe.expected().forEach((key, value) -> {
            if (value.equals(theirs.get(key)) || mayDiffer(key)) {
                return;
            }
            if (!source.name().equals(NEWEST) && CHANGED.matcher(key).matches()) {
                changed.add(key.replaceFirst(".* ", "").replaceFirst("\\..*", ""));
            } else {
                differences.add(key + ": ours " + value + ", theirs " + theirs.get(key));
            }
        });
        assertEquals(List.of(), differences);
        System.out.println(source + "'s headers: " + probe.expected().size() + " facts agree, " + probe.fields()
                + " fields; changed in this release: " + changed + "; not in these headers: " + unknown);
    }

    /**
     * Declares each function a second time, with Millrace's types. A compiler refuses a second declaration with
     * different types.
     */
    @ParameterizedTest
    @MethodSource("sources")
    void signaturesMatchTheHeaders(NcclSource headers, @TempDir Path directory) throws Exception {
        read(headers);
        HeaderScan ours = HeaderScan.of(Path.of("headers"));
        StringBuilder text = new StringBuilder(prologue()).append("extern \"C\" {\n");
        int count = 0;
        for (var function : ours.functions.entrySet()) {
            if (known.contains(function.getKey())) {
                // A release may hide a function behind a macro, but the library still has the function.
                text.append("#undef ").append(function.getKey()).append('\n');
                text.append(function.getValue().declaration()).append(";\n");
                count++;
            }
        }
        text.append("}\nint main() {\n");
        for (var pointer : ours.functionPointers.entrySet()) {
            String[] name = pointer.getKey().split("\\.");
            if (name.length == 2 && known.contains(name[0]) && !ALIKE.contains(pointer.getKey())) {
                String theirs = "decltype(%s::%s)()".formatted(name[0], name[1]);
                text.append("  { %s = %s; }\n".formatted(pointer.getValue().declaration(), theirs));
                count++;
            }
        }
        compile(directory, text.append("}\n").toString());
        System.out.println(source + "'s headers: " + count + " signatures agree");
    }

    private Path compile(Path directory, String text) throws IOException, InterruptedException {
        Path file = Files.writeString(directory.resolve("theirs.cc"), text);
        Path program = directory.resolve("theirs");
        List<String> arguments = new ArrayList<>(FLAGS);
        source.includes().forEach(include -> arguments.add("-I" + include));
        arguments.addAll(List.of("-o", program.toString(), file.toString()));
        CCompiler.cPlusPlus(arguments);
        return program;
    }

    private String theirSpelling(String field, Set<String> unknown) {
        if (UNADDRESSABLE.matcher(field).matches() || field.matches(".*" + UNNAMED.pattern() + "(\\[\\d+\\])*")) {
            return "";
        }
        String theirs = UNNAMED.matcher(field).replaceAll("");
        for (String word : theirs.substring(theirs.indexOf('.') + 1).split("[.\\[\\]]+")) {
            if (!known.contains(word) && !word.matches("\\d*")) {
                unknown.add(theirs); // this field exists only in other releases
                return "";
            }
        }
        return theirs;
    }

    /**
     * Returns whether the sizes of a struct may differ: a struct that contains its own size grows with each release.
     */
    private static boolean mayDiffer(String key) {
        return key.matches("sizeof nccl(Config|SimInfo)_t");
    }

    private String prologue() {
        StringBuilder text = new StringBuilder();
        includes.forEach(header -> text.append("#include \"").append(header).append("\"\n"));
        return text.toString();
    }

    /** Collects the words of a header and of its includes. These words include all names that the compiler knows. */
    private void collectWords(Path file, Set<Path> seen) throws IOException {
        if (file == null || !seen.add(file)) {
            return;
        }
        String text = Files.readString(file);
        WORD.matcher(text).results().map(MatchResult::group).forEach(known::add);
        for (MatchResult include : INCLUDE.matcher(text).results().toList()) {
            Path beside = file.resolveSibling(include.group(1));
            collectWords(Files.exists(beside) ? beside : source.find(include.group(1)), seen);
        }
    }
}
