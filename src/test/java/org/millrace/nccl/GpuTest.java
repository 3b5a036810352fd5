package org.millrace.nccl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.millrace.DataType;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;
import org.millrace.Registration;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaEvent;
import org.millrace.cuda.CudaException;
import org.millrace.cuda.CudaGraph;
import org.millrace.cuda.CudaKernel;
import org.millrace.cuda.CudaModule;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.CurrentDevice;
import org.millrace.cuda.DeviceMemory;
import org.millrace.cuda.HostFunction;
import org.millrace.cuda.HostRegistration;
import org.millrace.cuda.KernelParameters;
import org.millrace.cuda.LaunchShape;
import org.millrace.cuda.PinnedMemory;

/** The bindings on a GPU: memory, kernels, graphs, and a communicator over all GPUs of this process. */
@Tag("gpu")
class GpuTest {

    private static final Duration DEADLINE = Duration.ofSeconds(60);
    private static final int COUNT = 1 << 16;
    private static final long BYTES = 4L * COUNT;

    /** {@code scale(float *p, int n, float f)}: multiplies p[0..n-1] by f. */
    private static final String PTX = """
            .version 7.0
            .target sm_70
            .address_size 64
            .visible .entry scale(.param .u64 p, .param .u32 n, .param .f32 f)
            {
              .reg .pred %done;
              .reg .f32 %value, %factor;
              .reg .b32 %index, %count, %block, %width, %lane;
              .reg .b64 %base, %offset;
              ld.param.u64 %base, [p];
              ld.param.u32 %count, [n];
              ld.param.f32 %factor, [f];
              mov.u32 %block, %ctaid.x;
              mov.u32 %width, %ntid.x;
              mov.u32 %lane, %tid.x;
              mad.lo.s32 %index, %block, %width, %lane;
              setp.ge.s32 %done, %index, %count;
              @%done bra END;
              cvta.to.global.u64 %base, %base;
              mul.wide.s32 %offset, %index, 4;
              add.s64 %base, %base, %offset;
              ld.global.f32 %value, [%base];
              mul.f32 %value, %value, %factor;
              st.global.f32 [%base], %value;
            END:
              ret;
            }
            """;

    private static CudaRuntime cuda() {
        try {
            CudaRuntime cuda = CudaRuntime.load();
            cuda.deviceCount();
            return cuda;
        } catch (MillraceException missing) {
            return Assumptions.abort("the tests of the bindings on a GPU: " + missing.getMessage());
        }
    }

    private static NcclLibrary nccl() {
        try {
            return NcclLibrary.load();
        } catch (MillraceException missing) {
            return Assumptions.abort("the tests of NCCL on a GPU: " + missing.getMessage());
        }
    }

    private static float[] floats(int from) {
        float[] values = new float[COUNT];
        for (int i = 0; i < COUNT; i++) {
            values[i] = from + i % 1000;
        }
        return values;
    }

    private static float[] times(float[] values, float factor) {
        float[] product = values.clone();
        for (int i = 0; i < product.length; i++) {
            product[i] *= factor;
        }
        return product;
    }

    private static float[] download(CudaRuntime cuda, MemorySegment memory) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment host = arena.allocate(memory.byteSize());
            cuda.copy(host, memory);
            return host.toArray(ValueLayout.JAVA_FLOAT);
        }
    }

    private static void upload(CudaRuntime cuda, MemorySegment memory, float[] values) {
        try (Arena arena = Arena.ofConfined()) {
            cuda.copy(memory, arena.allocateFrom(ValueLayout.JAVA_FLOAT, values));
        }
    }

    @Test
    void devicesReportTheirProperties() {
        for (CudaDevice device : cuda().devices()) {
            assertFalse(device.name().isBlank());
            CudaDevice.MemoryInfo memory = device.memoryInfo();
            assertTrue(memory.free() > 0 && memory.free() <= memory.total(), memory.toString());
            // The two totals differ by memory that the driver keeps for itself.
            assertTrue(Math.abs(device.totalMemory() - memory.total()) < memory.total() / 10,
                    device.totalMemory() + " and " + memory.total());
            assertEquals(device, cuda().deviceByPciBusId(device.pciBusId()));
        }
    }

    @Test
    void memoryStreamsEventsAndHostFunctions() {
        CudaRuntime cuda = cuda();
        CudaDevice device = cuda.device(0);
        float[] values = floats(3);
        try (Arena arena = Arena.ofShared();
                DeviceMemory memory = device.allocate(BYTES);
                CudaStream stream = device.newStream();
                CudaEvent start = CudaEvent.timing(device);
                CudaEvent end = CudaEvent.timing(device)) {
            PinnedMemory out = PinnedMemory.allocate(device, BYTES, arena, PinnedMemory.Flag.MAPPED);
            PinnedMemory back = PinnedMemory.allocate(device, BYTES, arena);
            out.host().copyFrom(MemorySegment.ofArray(values));
            AtomicInteger called = new AtomicInteger();
            start.record(stream);
            stream.fill(memory.segment(), (byte) 0);
            // Copies to the device address of mapped host memory.
            stream.copy(memory.segment(), out.device());
            stream.copy(back.host(), memory.segment());
            stream.call(HostFunction.once(called::incrementAndGet));
            end.record(stream);
            end.synchronize(DEADLINE);
            stream.synchronize(DEADLINE);
            assertTrue(end.millisSince(start) > 0);
            assertEquals(1, called.get());
            assertArrayEquals(values, back.host().toArray(ValueLayout.JAVA_FLOAT));
            assertEquals(CudaRuntime.PointerAttributes.Kind.DEVICE,
                    CudaRuntime.PointerAttributes.of(cuda, memory.segment()).kind());
            assertEquals(CudaRuntime.PointerAttributes.Kind.HOST,
                    CudaRuntime.PointerAttributes.of(cuda, back.host()).kind());
            try (HostRegistration registration = HostRegistration.register(device, arena.allocate(8192, 4096))) {
                stream.copy(registration.device(), memory.slice(0, 8192));
                stream.synchronize(DEADLINE);
            }
        }
    }

    @Test
    void kernelsAndGraphs() {
        CudaRuntime cuda = cuda();
        CudaDevice device = cuda.device(0);
        float[] values = floats(1);
        try (CurrentDevice _ = device.makeCurrent();
                Arena arena = Arena.ofConfined();
                DeviceMemory memory = device.allocate(BYTES);
                CudaStream stream = device.newStream();
                CudaModule module = CudaModule.load(cuda, PTX.getBytes(StandardCharsets.US_ASCII))) {
            upload(cuda, memory.segment(), values);
            CudaKernel scale = module.kernel("scale");
            KernelParameters arguments =
                    KernelParameters.allocate(arena, ValueLayout.ADDRESS, ValueLayout.JAVA_INT, ValueLayout.JAVA_FLOAT)
                            .pointer(0, memory.segment())
                            .set(1, COUNT)
                            .set(2, 3f);
            LaunchShape shape = LaunchShape.of(COUNT / 256, 256);
            assertTrue(scale.maxActiveBlocksPerMultiprocessor(256, 0) > 0);
            scale.launch(shape, arguments, stream);
            stream.synchronize(DEADLINE);
            assertArrayEquals(times(values, 3), download(cuda, memory.segment()));
            AtomicInteger called = new AtomicInteger();
            try (HostFunction function = HostFunction.of(called::incrementAndGet)) {
                stream.beginGraph();
                scale.launch(shape, arguments.set(2, 2f), stream);
                stream.call(function);
                assertTrue(stream.isCapturing());
                try (CudaGraph graph = stream.endGraph(); CudaGraph.Executable executable = graph.instantiate()) {
                    executable.launch(stream);
                    executable.launch(stream);
                    stream.synchronize(DEADLINE);
                }
            }
            assertEquals(2, called.get());
            assertArrayEquals(times(values, 12), download(cuda, memory.segment()));
            CudaException noKernel = assertThrows(CudaException.class, () -> module.kernel("none"));
            assertEquals(500, noKernel.code());
        }
        String log = assertThrows(CudaException.class,
                () -> CudaModule.load(cuda, (PTX + "nonsense").getBytes(StandardCharsets.US_ASCII))).getMessage();
        assertTrue(log.contains("nonsense"), log);
    }

    @Test
    void allGpusOfOneProcessReduce() {
        NcclLibrary nccl = nccl();
        CudaRuntime cuda = cuda();
        List<CudaDevice> devices = cuda.devices();
        int size = devices.size();
        List<NcclCommunicator> ranks = nccl.joinAll(devices);
        List<CudaStream> streams = devices.stream().map(CudaDevice::newStream).toList();
        List<DeviceMemory> operands = devices.stream().map(device -> device.allocate(BYTES)).toList();
        float[] sum = new float[COUNT];
        for (int rank = 0; rank < size; rank++) {
            float[] values = floats(rank);
            upload(cuda, operands.get(rank).segment(), values);
            for (int i = 0; i < COUNT; i++) {
                sum[i] += values[i];
            }
        }
        reduce(nccl, ranks, streams, operands, ReduceOp.SUM);
        operands.forEach(operand -> assertArrayEquals(sum, download(cuda, operand.segment())));
        reduce(nccl, ranks, streams, operands, new ReduceOp.PreMulSum(0.5));
        operands.forEach(operand -> assertArrayEquals(times(sum, 0.5f * size), download(cuda, operand.segment())));
        for (NcclCommunicator rank : ranks) {
            assertEquals(NcclResult.SUCCESS, rank.asyncError());
            assertEquals(rank.device().index(), rank.cudaDevice());
            assertEquals(size, rank.size());
        }
        operands.forEach(DeviceMemory::close);
        streams.forEach(CudaStream::close);
        ranks.forEach(NcclCommunicator::close);
    }

    private static void reduce(NcclLibrary nccl, List<NcclCommunicator> ranks, List<CudaStream> streams,
            List<DeviceMemory> operands, ReduceOp op) {
        try (NcclGroup _ = nccl.group()) {
            for (int rank = 0; rank < ranks.size(); rank++) {
                MemorySegment operand = operands.get(rank).segment();
                ranks.get(rank).allReduce(operand, operand, COUNT, DataType.FLOAT32, op, streams.get(rank));
            }
        }
        streams.forEach(stream -> stream.synchronize(DEADLINE));
    }

    @Test
    void aNonBlockingCommunicatorWorksSplitsAndCloses() {
        NcclLibrary nccl = nccl();
        CudaRuntime cuda = cuda();
        CudaDevice device = cuda.device(0);
        NcclConfig config = NcclConfig.DEFAULT.withBlocking(false);
        NcclCommunicator whole = nccl.join(device, nccl.newUniqueId(), 1, 0, config);
        whole.awaitReady(DEADLINE);
        NcclCommunicator part = whole.split(7, 0, config).orElseThrow();
        part.awaitReady(DEADLINE);
        assertEquals(0, part.rank());
        assertEquals(1, part.size());
        List<DeviceMemory> memory = new ArrayList<>();
        try (CudaStream stream = device.newStream()) {
            memory.add(nccl.allocate(device, BYTES));
            memory.add(nccl.allocate(device, BYTES));
            upload(cuda, memory.get(0).segment(), floats(5));
            Registration registration = part.register(memory.get(0).segment());
            part.awaitReady(DEADLINE);
            part.allGather(memory.get(0).segment(), memory.get(1).segment(), COUNT, DataType.FLOAT32, stream);
            part.awaitReady(DEADLINE);
            stream.synchronize(DEADLINE);
            assertArrayEquals(floats(5), download(cuda, memory.get(1).segment()));
            registration.close();
        }
        memory.forEach(DeviceMemory::close);
        part.close();
        whole.abort();
        assertThrows(IllegalStateException.class, whole::asyncError);
    }
}
