package org.millrace.nccl;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.File;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.PaddingLayout;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.CCompiler;
import org.millrace.ffi.nccl.ncclDevCommRequirements_v28;
import org.millrace.ffi.nccl.ncclDevCommRequirements_v30;

/**
 * Compares the kernels' structs with NCCL's headers for kernels. Runs only if {@code -Dmillrace.nccl.headers=} names
 * the include path with nccl.h, nccl_device.h and cuda_runtime_api.h. Compares the headers of one release at a time.
 */
@EnabledIfSystemProperty(named = "millrace.nccl.headers", matches = ".+")
class DeviceLayoutHeadersTest {

    @Test
    void sizesAndOffsetsMatchTheHeaders(@TempDir Path directory) throws Exception {
        List<Path> includes =
                Stream.of(System.getProperty("millrace.nccl.headers").split(File.pathSeparator)).map(Path::of).toList();
        Assumptions.assumeTrue(includes.stream().anyMatch(path -> Files.exists(path.resolve("nccl_device.h"))),
                "no nccl_device.h on millrace.nccl.headers");
        int version = Integer.parseInt(ask(directory, includes, List.of("NCCL_VERSION_CODE")).get("NCCL_VERSION_CODE"));
        NcclDeviceCommunicator.DeviceLayout layout = NcclDeviceCommunicator.DeviceLayout.of(version, version, true);
        TreeMap<String, Long> ours = new TreeMap<>();
        ours.put("sizeof(ncclDevComm)", layout.bytes);
        ours.put("alignof(ncclDevComm)", layout.type().byteAlignment());
        ours.put("offsetof(ncclDevComm, rank)", layout.rankOffset);
        ours.put("offsetof(ncclDevComm, nRanks)", layout.rankOffset + Integer.BYTES);
        ours.put("sizeof(ncclDevCommRequirements)", requirementsBytes(layout, version));
        GroupLayout requirements =
                layout == NcclDeviceCommunicator.DeviceLayout.V28 ? ncclDevCommRequirements_v28.layout()
                        : ncclDevCommRequirements_v30.layout();
        String core = Files.readString(includes.stream()
                .map(path -> path.resolve("nccl_device/core.h"))
                .filter(Files::exists)
                .findFirst()
                .orElseThrow());
        requirements.memberLayouts()
                .stream()
                .filter(member -> !(member instanceof PaddingLayout))
                .map(member -> member.name().orElseThrow())
                .filter(core::contains)
                .forEach(name -> ours.put("offsetof(ncclDevCommRequirements, " + name + ")",
                        requirements.byteOffset(PathElement.groupElement(name))));
        // Finds the offset of ginContextCount: sets one byte at a time, and asks the layout for the count.
        MemorySegment struct = Arena.ofAuto().allocate(layout.type());
        for (long at = 0; at < layout.bytes; at++) {
            struct.fill((byte) 0).set(ValueLayout.JAVA_BYTE, at, (byte) 3);
            if (layout.contexts(struct) == 3) {
                ours.put("offsetof(ncclDevComm, ginContextCount)", at);
            }
        }
        SortedMap<String, String> theirs = ask(directory, includes, List.copyOf(ours.keySet()));
        TreeMap<String, String> expected = new TreeMap<>();
        ours.forEach((name, value) -> expected.put(name, value.toString()));
        assertEquals(expected, theirs);
        System.out.println(
                "NCCL " + NcclLibrary.versionText(version) + "'s device headers: " + theirs.size() + " facts agree");
    }

    private static long requirementsBytes(NcclDeviceCommunicator.DeviceLayout layout, int version) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment written = layout.write(new NcclDeviceCommunicator.Requirements(0, 1, 0, 0), version, arena);
            return layout == NcclDeviceCommunicator.DeviceLayout.V28 ? written.byteSize()
                    : ncclDevCommRequirements_v30.size(written);
        }
    }

    /** Compiles and runs a C++ program that prints the values of expressions. Returns these values. */
    private static SortedMap<String, String> ask(Path directory, List<Path> includes, List<String> expressions)
            throws IOException, InterruptedException {
        StringBuilder source = new StringBuilder(
                "#include <nccl.h>\n#include <nccl_device.h>\n#include <cstdio>\n#include <cstddef>\nint main() {\n");
        expressions.forEach(each -> source.append("  std::printf(\"%s=%ld\\n\", \"")
                .append(each)
                .append("\", (long)(")
                .append(each)
                .append("));\n"));
        Path file = Files.writeString(directory.resolve("ask.cc"), source.append("}\n"));
        Path program = directory.resolve("ask");
        // Without this definition, NCCL would include DOCA's headers, which are rarely installed.
        List<String> arguments = new ArrayList<>(List.of("-std=gnu++17", "-w", "-DNCCL_GIN_GDAKI_ENABLE=0"));
        includes.forEach(include -> arguments.add("-I" + include));
        arguments.addAll(List.of("-o", program.toString(), file.toString()));
        CCompiler.cPlusPlus(arguments);
        return CCompiler.answers(program);
    }
}
