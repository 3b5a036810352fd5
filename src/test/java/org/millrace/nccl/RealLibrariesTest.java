package org.millrace.nccl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.millrace.MillraceException;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaException;
import org.millrace.cuda.CudaReport;
import org.millrace.cuda.CudaRuntime;
import org.millrace.ffi.nccl.nccl_h;
import org.millrace.library.NativeLibrary;

/**
 * The real libnccl and libcudart of this machine, if present. Set their locations with {@code -Dmillrace.nccl.library}
 * and {@code -Dmillrace.cudart.library}. {@code pip download --no-deps nvidia-nccl-cu13} fetches libnccl. The tests
 * need no GPU and no driver.
 */
class RealLibrariesTest {

    private static NcclLibrary nccl() {
        try {
            return NcclLibrary.load();
        } catch (MillraceException missing) {
            return skip("libnccl", missing);
        }
    }

    private static CudaRuntime cuda() {
        try {
            return CudaRuntime.load();
        } catch (MillraceException missing) {
            return skip("libcudart", missing);
        }
    }

    private static <T> T skip(String library, MillraceException missing) {
        return Assumptions.abort("the tests against the real " + library + ": " + missing.getMessage());
    }

    @Test
    void ncclReportsItsVersionAndHasEveryFunction() {
        NcclLibrary nccl = nccl();
        assertTrue(nccl.version() >= 21800, "version " + nccl.version());
        assertTrue(nccl.versionText().startsWith("2."), nccl.versionText());
        NativeLibrary.Report report = NcclLibrary.probe(null);
        assertEquals(nccl.versionText(), report.version());
        assertNull(report.problem());
        List<String> lacking = NcclFunction.ALL.stream()
                .filter(function -> !nccl.library().has(function))
                .map(NcclFunction::symbol)
                .toList();
        assertEquals(NcclFunction.ALL.stream()
                .filter(function -> since(function) > nccl.version())
                .map(NcclFunction::symbol)
                .toList(), lacking, "what is not there, beside what is newer");
    }

    private static int since(NcclFunction function) {
        String[] parts = ((function.since() == null ? "0" : function.since()) + ".0.0").split("\\.");
        return 10_000 * Integer.parseInt(parts[0]) + 100 * Integer.parseInt(parts[1]) + Integer.parseInt(parts[2]);
    }

    @Test
    void ncclReportsItsParameters() {
        NcclLibrary nccl = nccl();
        Assumptions.assumeTrue(nccl.version() >= 23004, "this NCCL has no parameters to tell");
        NcclParameters parameters = nccl.parameters();
        List<String> names = parameters.names();
        assertFalse(names.isEmpty());
        for (String name : names) {
            NcclParameters.Parameter parameter = parameters.bind(name).orElseThrow();
            String text = parameters.text(name).orElseThrow();
            parameter.integer().ifPresent(number -> assertTrue(parameter.bytes().length <= 8, name + "=" + number));
            parameter.text().ifPresent(value -> assertEquals(text, value, name));
        }
        assertTrue(parameters.bind("NCCL_NO_SUCH_PARAMETER").isEmpty());
        assertTrue(parameters.text("NCCL_NO_SUCH_PARAMETER").isEmpty());
    }

    @Test
    void ncclCreatesDistinctIds() {
        NcclLibrary nccl = nccl();
        UniqueId first = nccl.newUniqueId();
        UniqueId second = nccl.newUniqueId();
        assertNotEquals(first, second);
        assertNotEquals("00".repeat(UniqueId.BYTES), first.toHex());
    }

    @Test
    void withoutADriverJoiningFailsWithNcclsOwnText() {
        NcclLibrary nccl = nccl();
        CudaRuntime cuda = cuda();
        Assumptions.assumeTrue(cuda.driverVersion() == 0, "this machine has a driver");
        CudaDevice device = new CudaDevice(cuda, 0);
        NcclException all = assertThrows(NcclException.class, () -> nccl.joinAll(List.of(device)));
        assertEquals("ncclCommInitAll", all.call());
        assertEquals(NcclResult.UNHANDLED_CUDA_ERROR, all.result());
        NcclException one;
        try (Arena arena = Arena.ofConfined()) {
            // Calls NCCL directly, because Millrace's own check of the device would report the error first.
            MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
            int code = nccl_h.ncclCommInitRank(out, 1, nccl.newUniqueId().write(arena), 0);
            one = assertThrows(NcclException.class, () -> NcclCommunicator.joined(nccl, device, out, 1, 0,
                    NcclConfig.DEFAULT, NcclFunction.COMM_INIT_RANK, code));
        }
        assertTrue(one.getMessage()
                .startsWith("ncclCommInitRank failed on rank 0 of 1, CUDA device 0: ncclUnhandledCudaError (1)"),
                one.getMessage());
        assertTrue(one.getMessage().contains("NCCL reports: "), one.getMessage());
        CudaException early = assertThrows(CudaException.class, () -> nccl.join(device, nccl.newUniqueId(), 1, 0));
        assertEquals(35, early.code());
    }

    @Test
    void cudaReportsItsVersionAndDevicesOrAReason() {
        CudaRuntime cuda = cuda();
        assertTrue(cuda.version() >= 11000, "version " + cuda.version());
        CudaReport report = CudaReport.probe(null);
        assertEquals(CudaRuntime.versionText(cuda.version()), report.library().version());
        assertEquals(cuda.library().path(), report.library().path());
        if (cuda.driverVersion() == 0) {
            assertNull(report.driver());
            assertTrue(report.devices().isEmpty());
            assertTrue(
                    report.deviceProblem().startsWith("cudaGetDeviceCount failed: cudaErrorInsufficientDriver (35): "),
                    report.deviceProblem());
            CudaException failure = assertThrows(CudaException.class, cuda::deviceCount);
            assertEquals(35, failure.code());
        } else {
            assertNotNull(report.driver());
            assertFalse(report.devices().isEmpty() && report.deviceProblem() == null, "neither devices nor a reason");
        }
    }
}
