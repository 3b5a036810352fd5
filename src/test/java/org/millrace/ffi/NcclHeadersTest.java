package org.millrace.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.File;
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
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;

/**
 * Compares the declarations in {@code headers/} with NCCL's and CUDA's own, where someone has those: run with {@code
 * -Dmillrace.nccl.headers=} and the include path on which nccl.h and cuda_runtime_api.h lie. Where NCCL's source is on
 * it too ({@code src/include}, {@code src/include/plugin} and {@code src}, with the cccl folder of CUDA's headers), the
 * plugin tables and the structs shared with the device are compared as well.
 *
 * <p>
 * What these headers do not know (names of ours, or of another release) is left out and printed.
 */
@EnabledIfSystemProperty(named = "millrace.nccl.headers", matches = ".+")
class NcclHeadersTest {
    private static final Pattern INCLUDE = Pattern.compile("(?m)^#\\s*include\\s+[\"<](.+?)[\">]");
    private static final Pattern WORD = Pattern.compile("\\w+");
    /** They name a release. */
    private static final Set<String> VERSION = Set.of("NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH", "NCCL_VERSION_CODE");
    private static final List<String> PUBLIC = List.of("nccl.h", "cuda_runtime_api.h");
    private static final List<String> INTERNAL =
            List.of("nccl.h", "comm.h", "nccl_net.h", "nccl_tuner.h", "device/network/unpack/unpack_defs.h");
    /** Structs and unions that have no name in NCCL, so that their members seem to be the outer one's. */
    private static final Pattern UNNAMED = Pattern.compile("\\.(words|piece|schedule)(?=[.\\[]|$)");
    /** Padding, and the bytes and words that stand for bit-fields: C cannot take their offset. */
    private static final Pattern UNADDRESSABLE =
            Pattern.compile(".*\\.(pad\\d.*|\\w+Flags|channelLo|channelHi|nWarps|chunkGrains)"
                    + "|ncclDevWorkColl\\.schedule(\\.(cbd|collnet))?");

    private static List<Path> includePath;
    private static List<String> includes;
    private static Set<String> known;

    @BeforeAll
    static void readHeaders() throws IOException {
        includePath =
                Stream.of(System.getProperty("millrace.nccl.headers").split(File.pathSeparator)).map(Path::of).toList();
        boolean internal = INTERNAL.stream().allMatch(header -> find(header) != null);
        includes = Stream.concat(PUBLIC.stream(), internal ? INTERNAL.stream() : Stream.empty()).distinct().toList();
        known = new HashSet<>();
        for (String header : includes) {
            assertFalse(find(header) == null, header + " is not on millrace.nccl.headers: " + includePath);
            collectWords(find(header), new HashSet<>());
        }
    }

    @Test
    void layoutsAndConstantsAreTheirs(@TempDir Path directory) throws Exception {
        HeaderScan ours = HeaderScan.of(Path.of("headers"));
        AbiProbe probe = new AbiProbe(NcclHeadersTest::theirSpelling);
        Set<String> unknown = new TreeSet<>();
        for (Bindings part : Bindings.all()) {
            for (var group : part.groups().entrySet()) {
                if (known.contains(group.getKey())) {
                    long demanded = ours.alignments.getOrDefault(group.getKey(), 1L);
                    long alignment = Math.max(group.getValue().byteAlignment(), demanded);
                    probe.group(group.getKey(), group.getValue(), alignment);
                } else {
                    unknown.add(group.getKey());
                }
            }
            for (var constant : part.constants().entrySet()) {
                if (known.contains(constant.getKey()) && !VERSION.contains(constant.getKey())) {
                    probe.value(constant.getKey(), constant.getValue());
                } else {
                    unknown.add(constant.getKey());
                }
            }
        }
        CCompiler compiler = CCompiler.cPlusPlus(directory);
        Path program = compiler.compile("theirs", probe.source(prologue()), includePath);
        Map<String, String> theirs = compiler.answers(program);
        List<String> differences = new ArrayList<>();
        probe.expected().forEach((key, value) -> {
            if (!value.equals(theirs.get(key)) && !mayDiffer(key, value, theirs.get(key))) {
                differences.add(key + ": ours " + value + ", theirs " + theirs.get(key));
            }
        });
        assertEquals(List.of(), differences);
        System.out.println("NCCL's headers: " + probe.expected().size() + " facts agree, " + probe.fields()
                + " fields; not in these headers: " + unknown);
    }

    /** A compiler refuses a second declaration, or an initial value, of another type. */
    @Test
    void signaturesAreTheirs(@TempDir Path directory) throws Exception {
        HeaderScan ours = HeaderScan.of(Path.of("headers"));
        StringBuilder source = new StringBuilder(prologue()).append("extern \"C\" {\n");
        int count = 0;
        for (var function : ours.functions.entrySet()) {
            if (known.contains(function.getKey())) {
                // A release may hide a function behind a macro; the library still has the function.
                source.append("#undef ").append(function.getKey()).append('\n');
                source.append(function.getValue().declaration()).append(";\n");
                count++;
            }
        }
        source.append("}\nint main() {\n");
        for (var pointer : ours.functionPointers.entrySet()) {
            String[] name = pointer.getKey().split("\\.");
            if (name.length == 2 && known.contains(name[0])) {
                String theirs = "decltype(%s::%s)()".formatted(name[0], name[1]);
                source.append("  { %s = %s; }\n".formatted(pointer.getValue().declaration(), theirs));
                count++;
            }
        }
        CCompiler.cPlusPlus(directory).compile("signatures", source.append("}\n").toString(), includePath);
        System.out.println("NCCL's headers: " + count + " signatures agree");
    }

    private static String theirSpelling(String field) {
        if (UNADDRESSABLE.matcher(field).matches() || field.matches(".*" + UNNAMED.pattern() + "(\\[\\d+\\])*")) {
            return "";
        }
        return UNNAMED.matcher(field).replaceAll("");
    }

    /** A struct that begins with its size may have grown at its end. */
    private static boolean mayDiffer(String key, String ours, String theirs) {
        return key.matches("sizeof nccl(Config|SimInfo)_t") && Long.parseLong(theirs) > Long.parseLong(ours);
    }

    private static String prologue() {
        StringBuilder text = new StringBuilder();
        includes.forEach(header -> text.append("#include \"").append(header).append("\"\n"));
        return text.toString();
    }

    /** Follows the includes, so that names which the compiler would not see do not count. */
    private static void collectWords(Path file, Set<Path> seen) throws IOException {
        if (file == null || !seen.add(file)) {
            return;
        }
        String text = Files.readString(file);
        WORD.matcher(text).results().map(MatchResult::group).forEach(known::add);
        for (MatchResult include : INCLUDE.matcher(text).results().toList()) {
            Path beside = file.resolveSibling(include.group(1));
            collectWords(Files.exists(beside) ? beside : find(include.group(1)), seen);
        }
    }

    private static Path find(String header) {
        return includePath.stream().map(path -> path.resolve(header)).filter(Files::exists).findFirst().orElse(null);
    }
}
