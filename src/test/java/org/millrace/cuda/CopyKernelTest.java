package org.millrace.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemoryLayout;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The arguments match the parameters of the kernel's image. On a GPU, another number or order would cause an illegal
 * address.
 */
class CopyKernelTest {

    private static final Pattern ENTRY = Pattern.compile("\\.entry copy_commands\\(([^)]*)\\)");
    private static final Pattern PARAMETER = Pattern.compile("\\.param \\.u(\\d+)");

    /** A process loads one CUDA runtime. */
    private static StubLibrary stub;
    private static CudaRuntime cuda;

    /** A driver's call may not return for as long as a kernel runs; the thread stores results in that memory then. */
    @Test
    void memoryOfALaunchThatDoesNotReturnIsNotFreed() throws InterruptedException {
        CountDownLatch held = new CountDownLatch(1);
        Thread launching = Thread.ofPlatform().daemon().start(() -> {
            try {
                held.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        AtomicInteger freed = new AtomicInteger();
        CopyKernel.freeAfter(launching, Duration.ofMillis(1), freed::incrementAndGet);
        assertEquals(0, freed.get());
        held.countDown();
        CopyKernel.freeAfter(launching, Duration.ofSeconds(30), freed::incrementAndGet);
        assertEquals(1, freed.get());
    }

    /** Each call of CUDA in the constructor fails once. */
    @ParameterizedTest
    @ValueSource(
            strings = {"cudaLibraryLoadData", "cudaLibraryGetKernel", "cudaDeviceGetStreamPriorityRange",
                    "cudaStreamCreateWithPriority", "cudaHostAlloc", "cudaMalloc", "cudaMemset"})
    void aFailedStartFreesWhatItHadAllocated(String function) {
        if (stub == null) {
            stub = StubLibrary.cudart();
            cuda = CudaRuntime.load(stub.path().toString());
        }
        CudaDevice device = cuda.device(0);
        stub.calls();
        stub.fail(function, 2, 1);
        assertThrows(CudaException.class,
                () -> CopyKernel.load(null, device, CopyKernel.Stay.of(Duration.ofMillis(1))));
        Map<String, Long> calls = stub.calls()
                .stream()
                .map(call -> call.split(" ")[0])
                .collect(Collectors.groupingBy(name -> name, Collectors.counting()));
        Map.of("cudaLibraryLoadData", "cudaLibraryUnload", "cudaStreamCreateWithPriority", "cudaStreamDestroy",
                "cudaHostAlloc", "cudaFreeHost", "cudaMalloc", "cudaFree")
                .forEach((allocated, freed) -> assertEquals(
                        calls.getOrDefault(allocated, 0L) - (allocated.equals(function) ? 1 : 0),
                        calls.getOrDefault(freed, 0L), freed));
    }

    @Test
    void parametersMatchTheImage() throws IOException {
        String image;
        try (InputStream ptx = CopyKernel.class.getResourceAsStream("copy.ptx")) {
            image = new String(ptx.readAllBytes(), StandardCharsets.US_ASCII);
        }
        MatchResult entry = ENTRY.matcher(image).results().findFirst().orElseThrow();
        List<Long> declared =
                PARAMETER.matcher(entry.group(1)).results().map(bits -> Long.parseLong(bits.group(1))).toList();
        assertEquals(declared,
                Arrays.stream(CopyKernel.PARAMETERS).map(MemoryLayout::byteSize).map(n -> n * 8).toList());
    }
}
