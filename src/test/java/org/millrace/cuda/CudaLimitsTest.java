package org.millrace.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.millrace.MillraceException;
import org.millrace.library.NativeLibrary;

/** Virtual threads, waits that reach their deadline, and machines without a driver. */
@ExtendWith(OwnClassLoader.class)
class CudaLimitsTest {

    private static StubLibrary stub;
    private static CudaRuntime cuda;

    @BeforeEach
    void load() {
        if (stub == null) {
            stub = StubLibrary.cudart();
            cuda = CudaRuntime.load(stub.path().toString());
        }
        stub.fail("", 0, 0);
    }

    @Test
    void theCurrentDeviceIsRefusedOnVirtualThreads() throws InterruptedException {
        CudaDevice device = cuda.device(0);
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        Thread.startVirtualThread(() -> thrown.set(assertThrows(IllegalStateException.class, device::makeCurrent)))
                .join();
        assertTrue(thrown.get().getMessage().contains("platform thread"), thrown.get().getMessage());
    }

    @Test
    void deadlinesNameTheMissingEvent() {
        CudaStream stream = cuda.device(0).newStream();
        CudaEvent event = CudaEvent.marker(cuda.device(0));
        stub.fail("cudaStreamQuery", 600, Integer.MAX_VALUE);
        String late = assertThrows(MillraceException.class, () -> stream.synchronize(Duration.ZERO)).getMessage();
        assertTrue(late.contains("CUDA device 0") && late.contains("0 ms") && late.contains("every rank"), late);
        stub.fail("cudaEventQuery", 600, Integer.MAX_VALUE);
        assertThrows(MillraceException.class, () -> event.synchronize(Duration.ofMillis(1)));
        stub.fail("", 0, 0);
    }

    @Test
    void theReportListsDevicesOrTheReasonForTheirAbsence() {
        CudaReport report = CudaReport.probe(stub.path().toString());
        assertEquals(new NativeLibrary.Report("CUDA runtime", stub.path(), "12.4", null, false, List.of()),
                report.library());
        assertEquals("13.0", report.driver());
        assertEquals(new CudaReport.Device(1, "Stub GPU 1", 80L << 30, "0000:42:00.0", "1075.1076"),
                report.devices().get(1));
        assertNull(report.deviceProblem());
        stub.driver(0);
        stub.fail("cudaGetDeviceCount", 35, 1);
        CudaReport none = CudaReport.probe(null);
        stub.driver(13000);
        assertNull(none.driver());
        assertEquals(List.of(), none.devices());
        assertTrue(none.deviceProblem().contains("(35)") && none.deviceProblem().contains("no NVIDIA driver"),
                none.deviceProblem());
    }
}
