package org.millrace.cuda.driver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaException;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.OwnClassLoader;
import org.millrace.cuda.StubLibrary;

/** Launch of the copy kernel. A C library of this test replaces libcudart. */
@ExtendWith(OwnClassLoader.class)
class CopyKernelStartTest {

    private static final List<String> CALLS_OF_THE_START =
            List.of("cudaLibraryLoadData", "cudaLibraryGetKernel", "cudaDeviceGetStreamPriorityRange",
                    "cudaStreamCreateWithPriority", "cudaHostAlloc", "cudaMalloc", "cudaMemset");
    private static final Map<String, String> FREED_BY =
            Map.of("cudaLibraryLoadData", "cudaLibraryUnload", "cudaStreamCreateWithPriority", "cudaStreamDestroy",
                    "cudaHostAlloc", "cudaFreeHost", "cudaMalloc", "cudaFree");

    @Test
    void aFailedStartFreesAllResources() {
        StubLibrary stub = StubLibrary.cudart();
        CudaDevice device = CudaRuntime.load(stub.path().toString()).device(0);
        for (String failing : CALLS_OF_THE_START) {
            stub.calls();
            stub.fail(failing, 2, 1);
            assertThrows(CudaException.class,
                    () -> CopyKernel.load(null, device, CopyKernel.Stay.of(Duration.ofMillis(1))));
            Map<String, Long> calls = stub.calls()
                    .stream()
                    .collect(Collectors.groupingBy(call -> call.split(" ")[0], Collectors.counting()));
            FREED_BY.forEach((allocated, freed) -> assertEquals(
                    calls.getOrDefault(allocated, 0L) - (allocated.equals(failing) ? 1 : 0),
                    calls.getOrDefault(freed, 0L), failing + " failed: " + freed));
        }
    }
}
