package org.millrace.cuda;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.ExtendWith;

/** Calls to a C library that stands in for libcudart. The test checks every bound function and every argument. */
@ExtendWith(OwnClassLoader.class)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class CudaArgumentsTest {

    private static StubLibrary stub;
    private static CudaRuntime cuda;

    @BeforeEach
    void load() {
        if (stub == null) {
            stub = StubLibrary.cudart();
            cuda = CudaRuntime.load(stub.path().toString());
        }
        stub.allCalls();
    }

    private static String hex(MemorySegment segment) {
        return "0x" + Long.toHexString(segment.address());
    }

    private static void assertCalls(String... expected) {
        assertEquals(List.of(expected), stub.calls());
    }

    @Test
    void versions() {
        assertEquals(12040, cuda.version());
        assertEquals("12.4", CudaRuntime.versionText(cuda.version()));
        assertEquals(13000, cuda.driverVersion());
        assertCalls("cudaRuntimeGetVersion", "cudaRuntimeGetVersion", "cudaDriverGetVersion");
        assertEquals(stub.path(), cuda.library().path());
    }

    @Test
    void devices() {
        CudaDevice device = cuda.devices().get(1);
        assertEquals(1075, device.attribute(CudaDevice.Attribute.COMPUTE_CAPABILITY_MAJOR));
        assertEquals(1010, device.attribute(10));
        assertEquals("1075.1076", device.computeCapability());
        assertEquals("0000:42:00.0", device.pciBusId());
        assertEquals(device, cuda.deviceByPciBusId("0000:42:00.0"));
        assertTrue(device.canAccessPeer(cuda.device(0)));
        assertEquals("Stub GPU 1", device.name());
        assertEquals(80L << 30, device.totalMemory());
        assertEquals(new CudaDevice.MemoryInfo(3L << 32, 80L << 30), device.memoryInfo());
        assertArrayEquals(new int[] {0, -5}, device.streamPriorities());
        assertCalls("cudaGetDeviceCount", "cudaDeviceGetAttribute 75 1", "cudaDeviceGetAttribute 10 1",
                "cudaDeviceGetAttribute 75 1", "cudaDeviceGetAttribute 76 1", "cudaDeviceGetPCIBusId 32 1",
                "cudaDeviceGetByPCIBusId 0000:42:00.0", "cudaGetDeviceCount", "cudaDeviceCanAccessPeer 1 0",
                "cudaGetDeviceProperties 1", "cudaGetDeviceProperties 1", "cudaMemGetInfo",
                "cudaDeviceGetStreamPriorityRange");
        assertThrows(IllegalArgumentException.class, () -> cuda.device(2));
    }

    @Test
    void theCurrentDeviceIsRestored() {
        try (CurrentDevice _ = cuda.device(1).makeCurrent()) {
            CurrentDevice same = cuda.device(1).makeCurrent();
            same.close();
            same.close();
        }
        assertEquals(List.of("cudaGetDeviceCount", "cudaGetDevice", "cudaSetDevice 1", "cudaGetDeviceCount",
                "cudaGetDevice", "cudaSetDevice 0"), stub.allCalls());
    }

    @Test
    void peerAccessMayBeEnabledTwice() {
        CudaDevice device = cuda.device(0);
        CudaDevice peer = cuda.device(1);
        device.enablePeerAccess(peer);
        stub.fail("cudaDeviceEnablePeerAccess", 704, 1);
        device.enablePeerAccess(peer);
        device.disablePeerAccess(peer);
        assertCalls("cudaGetDeviceCount", "cudaGetDeviceCount", "cudaDeviceEnablePeerAccess 1 0",
                "cudaDeviceEnablePeerAccess 1 0", "cudaGetLastError", "cudaDeviceDisablePeerAccess 1");
    }

    @Test
    void streamsAndEvents() {
        CudaDevice device = cuda.device(1);
        CudaStream stream = device.newStream();
        CudaStream urgent = device.newStream(-5);
        CudaEvent event = CudaEvent.timing(device);
        CudaEvent marker = CudaEvent.marker(device);
        String s = hex(stream.handle().address());
        String u = hex(urgent.handle().address());
        String e = hex(event.handle().address());
        String m = hex(marker.handle().address());
        assertCalls("cudaGetDeviceCount", "cudaStreamCreateWithFlags 1", "cudaStreamCreateWithPriority 1 -5",
                "cudaEventCreateWithFlags 0", "cudaEventCreateWithFlags 2");
        event.record(stream);
        urgent.waitFor(event);
        marker.record(urgent);
        assertTrue(event.query());
        assertEquals(1.25f, marker.millisSince(event));
        assertCalls("cudaEventRecord " + e + " " + s, "cudaStreamWaitEvent " + u + " " + e + " 0",
                "cudaEventRecord " + m + " " + u, "cudaEventQuery " + e, "cudaEventElapsedTime " + e + " " + m);
        stub.fail("cudaStreamQuery", 600, 2);
        assertFalse(stream.query());
        stream.synchronize(Duration.ofSeconds(20));
        assertCalls("cudaStreamQuery " + s, "cudaGetLastError", "cudaStreamQuery " + s, "cudaGetLastError",
                "cudaStreamQuery " + s);
        stub.fail("cudaEventQuery", 600, 1);
        event.synchronize(Duration.ofSeconds(20));
        stream.close();
        stream.close();
        event.close();
        event.close();
        marker.close();
        assertCalls("cudaEventQuery " + e, "cudaGetLastError", "cudaEventQuery " + e, "cudaStreamQuery " + s,
                "cudaStreamDestroy " + s, "cudaEventDestroy " + e, "cudaEventDestroy " + m);
        assertThrows(IllegalStateException.class, stream::query);
        assertThrows(IllegalStateException.class, () -> event.record(urgent));
        CudaStream.of(device, MemorySegment.ofAddress(0x77)).close();
        assertCalls();
    }

    @Test
    void captures() {
        CudaStream stream = cuda.device(0).newStream();
        String s = hex(stream.handle().address());
        stub.calls();
        stream.beginGraph();
        assertTrue(stream.isCapturing());
        CudaGraph graph = stream.endGraph();
        CudaGraph.Executable executable = graph.instantiate();
        graph.close();
        executable.launch(stream);
        executable.close();
        executable.close();
        List<String> calls = stub.calls();
        String g = calls.get(3).split(" ")[1];
        String x = calls.get(5).split(" ")[1];
        assertEquals(List.of("cudaStreamBeginCapture " + s + " 1", "cudaStreamIsCapturing " + s,
                "cudaStreamEndCapture " + s, "cudaGraphInstantiateWithFlags " + g + " 0", "cudaGraphDestroy " + g,
                "cudaGraphLaunch " + x + " " + s, "cudaGraphExecDestroy " + x), calls);
        assertThrows(IllegalStateException.class, () -> executable.launch(stream));
    }

    @Test
    void hostFunctionsRunOnThreadsOfCuda() {
        CudaStream stream = cuda.device(0).newStream();
        List<Thread> threads = new ArrayList<>();
        HostFunction again = HostFunction.of(() -> threads.add(Thread.currentThread()));
        stream.call(again);
        stream.call(again);
        assertEquals(2, threads.size());
        assertFalse(threads.contains(Thread.currentThread()));
        again.close();
        assertThrows(IllegalStateException.class, () -> stream.call(again));
        HostFunction once = HostFunction.once(() -> threads.clear());
        stream.call(once);
        assertTrue(threads.isEmpty());
        assertThrows(IllegalStateException.class, () -> stream.call(once));
        IllegalStateException planted = new IllegalStateException("planted");
        HostFunction failing = HostFunction.of(() -> {
            throw planted;
        });
        assertNull(failing.failure());
        stream.call(failing);
        assertSame(planted, failing.failure());
    }

    @Test
    void deviceMemory() {
        CudaDevice device = cuda.device(1);
        stub.allCalls();
        DeviceMemory memory = device.allocate(1000);
        assertEquals(List.of("cudaGetDevice", "cudaSetDevice 1", "cudaMalloc 1000", "cudaSetDevice 0"),
                stub.allCalls());
        String base = "0x" + Long.toHexString(memory.address());
        assertEquals(1000, memory.byteSize());
        assertEquals(memory.address() + 100, memory.slice(100, 900).address());
        assertThrows(IndexOutOfBoundsException.class, () -> memory.slice(100, 901));
        CudaRuntime.PointerAttributes attributes = CudaRuntime.PointerAttributes.of(cuda, memory.segment());
        assertEquals(
                new CudaRuntime.PointerAttributes(CudaRuntime.PointerAttributes.Kind.DEVICE, 1, memory.address(), 0),
                attributes);
        memory.close();
        memory.close();
        assertCalls("cudaPointerGetAttributes " + base, "cudaFree " + base);
        assertThrows(IllegalStateException.class, memory::segment);
        String inArena;
        try (Arena arena = Arena.ofConfined()) {
            inArena = "0x" + Long.toHexString(device.allocate(0).attach(arena).address());
        }
        assertCalls("cudaMalloc 0", "cudaFree " + inArena);
        assertThrows(IllegalArgumentException.class, () -> device.allocate(-1));
    }

    @Test
    void pinnedMemoryIsZeroedAndMapped() {
        CudaDevice device = cuda.device(0);
        stub.allCalls();
        String host;
        String plain;
        try (Arena arena = Arena.ofConfined()) {
            PinnedMemory pinned =
                    PinnedMemory.allocate(device, 5000, arena, PinnedMemory.Flag.MAPPED, PinnedMemory.Flag.PORTABLE);
            host = hex(pinned.host());
            assertEquals(5000, pinned.host().byteSize());
            assertEquals(-1, pinned.host().mismatch(MemorySegment.ofArray(new byte[5000])));
            assertEquals(pinned.host().address() + 0x100000, pinned.device().address());
            assertEquals(5000, pinned.device().byteSize());
            PinnedMemory combined = PinnedMemory.allocate(device, 8, arena, PinnedMemory.Flag.WRITE_COMBINED);
            plain = hex(combined.host());
            assertNull(combined.device());
        }
        List<String> calls = stub.calls();
        assertEquals(List.of("cudaHostAlloc 5000 3", "cudaHostGetDevicePointer " + host + " 0", "cudaHostAlloc 8 4"),
                calls.subList(0, 3));
        assertEquals(Set.of("cudaFreeHost " + plain, "cudaFreeHost " + host),
                Set.copyOf(calls.subList(3, calls.size())));
        Arena closed = Arena.ofConfined();
        closed.close();
        assertThrows(IllegalStateException.class, () -> PinnedMemory.allocate(device, 8, closed));
        assertEquals(List.of("cudaHostAlloc", "cudaFreeHost"),
                stub.calls().stream().map(call -> call.split(" ")[0]).toList());
    }

    @Test
    void registeredMemory() {
        CudaDevice device = cuda.device(0);
        stub.allCalls();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(4096, 4096);
            HostRegistration registration = HostRegistration.register(device, memory);
            assertEquals(memory.address() + 0x100000, registration.device().address());
            registration.close();
            registration.close();
            assertCalls("cudaHostRegister " + hex(memory) + " 4096 3", "cudaHostGetDevicePointer " + hex(memory) + " 0",
                    "cudaHostUnregister " + hex(memory));
            assertThrows(IllegalStateException.class, registration::device);
        }
        assertThrows(IllegalArgumentException.class,
                () -> HostRegistration.register(device, MemorySegment.ofArray(new byte[8])));
    }

    @Test
    void copiesAndFills() {
        CudaStream stream = cuda.device(0).newStream();
        DeviceMemory memory = cuda.device(0).allocate(256);
        String s = hex(stream.handle().address());
        String d = hex(memory.segment());
        stub.allCalls();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(256);
            cuda.copy(memory.segment(), host);
            cuda.fill(memory.segment(), (byte) 0xfe);
            stream.copy(host, memory.segment());
            stream.fill(memory.slice(16, 32), (byte) 7);
            assertCalls("cudaMemcpy " + d + " " + hex(host) + " 256 4", "cudaMemset " + d + " 254 256",
                    "cudaMemcpyAsync " + hex(host) + " " + d + " 256 4 " + s,
                    "cudaMemsetAsync " + hex(memory.slice(16, 32)) + " 7 32 " + s);
            assertThrows(IllegalArgumentException.class, () -> stream.copy(host, memory.slice(0, 255)));
            assertThrows(IllegalArgumentException.class,
                    () -> stream.copy(memory.segment(), MemorySegment.ofArray(new byte[256])));
            assertCalls();
        }
        memory.close();
    }

    @Test
    void kernels() {
        CudaStream stream = cuda.device(0).newStream();
        stub.allCalls();
        CudaModule module = CudaModule.load(cuda, ".version-8.0".getBytes(StandardCharsets.US_ASCII));
        CudaKernel kernel = module.kernel("scale_pilf");
        try (Arena arena = Arena.ofConfined()) {
            KernelParameters arguments = KernelParameters.allocate(arena, ValueLayout.ADDRESS, ValueLayout.JAVA_INT,
                    ValueLayout.JAVA_LONG, ValueLayout.JAVA_FLOAT);
            arguments.pointer(0, DeviceSegments.of(0x700000001000L, 8)).set(1, -3).set(2, 1L << 40).set(3, 0.5f);
            kernel.launch(LaunchShape.of(new int[] {5, 6, 7}, new int[] {32, 2, 3}, 2048), arguments, stream);
        }
        CudaKernel byValue = module.kernel("gin_sl");
        try (Arena arena = Arena.ofConfined()) {
            KernelParameters arguments = KernelParameters.allocate(arena,
                    MemoryLayout.sequenceLayout(25, ValueLayout.JAVA_LONG), ValueLayout.JAVA_LONG);
            byte[] struct = new byte[200];
            struct[0] = 0x12;
            struct[199] = (byte) 0xef;
            byValue.launch(LaunchShape.of(1, 32), arguments.struct(0, MemorySegment.ofArray(struct)).set(1, 5L),
                    stream);
            assertThrows(IllegalArgumentException.class,
                    () -> arguments.struct(0, MemorySegment.ofArray(new byte[199])));
        }
        assertEquals(7, kernel.maxActiveBlocksPerMultiprocessor(256, 4096));
        kernel.maxDynamicSharedMemory(new CudaDevice(cuda, 1), 98304);
        List<String> calls = stub.calls();
        String m = calls.get(1).split(" ")[1];
        String k = calls.get(2).split(" ")[1];
        assertEquals(List.of("cudaLibraryLoadData .version-8.0 5 6 16384 2 (nil) (nil) 0",
                "cudaLibraryGetKernel " + m + " scale_pilf", "cudaLaunchKernel " + k
                        + " 5x6x7 32x2x3 0x700000001000 -3 1099511627776 0.5 2048 " + hex(stream.handle().address()),
                "cudaLibraryGetKernel " + m + " gin_sl",
                "cudaLaunchKernel " + calls.get(4).split(" ")[1] + " 1x1x1 32x1x1 {12..ef} 5 0 "
                        + hex(stream.handle().address()),
                "cudaOccupancyMaxActiveBlocksPerMultiprocessor " + k + " 256 4096",
                "cudaKernelSetAttributeForDevice " + k + " 8 98304 1"), calls);
        module.close();
        module.close();
        assertCalls("cudaLibraryUnload " + m);
        assertThrows(IllegalStateException.class,
                () -> kernel.launch(LaunchShape.of(1, 1), KernelParameters.allocate(Arena.ofAuto()), stream));
        assertThrows(IllegalArgumentException.class, () -> LaunchShape.of(0, 1));
    }

    @Test
    void failuresStateCallCodeAndRemedy() {
        CudaDevice device = cuda.device(0);
        stub.fail("cudaMalloc", 2, 1);
        CudaException failure = assertThrows(CudaException.class, () -> device.allocate(1L << 50));
        assertEquals("cudaMalloc", failure.call());
        assertEquals(2, failure.code());
        assertTrue(
                failure.getMessage()
                        .startsWith("cudaMalloc failed: cudaErrorStub (2): what the stub says. Free some memory"),
                failure.getMessage());
        List<String> calls = stub.calls();
        assertEquals(List.of("cudaMalloc 1125899906842624", "cudaGetLastError", "cudaGetErrorName 2",
                "cudaGetErrorString 2"), calls.subList(1, calls.size()));
        stub.fail("cudaGetDeviceCount", 100, 1);
        assertTrue(assertThrows(CudaException.class, cuda::deviceCount).getMessage().contains("CUDA_VISIBLE_DEVICES"));
        stub.fail("cudaLibraryLoadData", 218, 1);
        String message = assertThrows(CudaException.class, () -> CudaModule.load(cuda, new byte[] {'x'})).getMessage();
        assertTrue(message.contains("ptxas: line 3: unknown instruction"), message);
    }

    @Test
    @Order(Integer.MAX_VALUE)
    void everyFunctionWasCalled() {
        List<String> missing = CudaFunction.ALL.stream()
                .map(CudaFunction::symbol)
                .filter(symbol -> !stub.everCalled().contains(symbol))
                .toList();
        assertEquals(List.of(), missing, "functions that are bound, but that no test of this class calls");
    }
}
