package org.millrace.nccl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.math.BigInteger;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.ExtendWith;
import org.millrace.DataType;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;
import org.millrace.Registration;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.DeviceMemory;
import org.millrace.cuda.DeviceSegments;
import org.millrace.cuda.OwnClassLoader;
import org.millrace.library.NativeLibrary;
import org.millrace.nccl.NcclConfig.Option;

/** Calls to a C library that stands in for libnccl. The test checks every bound function and every argument. */
@ExtendWith(OwnClassLoader.class)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class NcclArgumentsTest {

    /** Beginning of a config that NCCL reads: size, magic, version. */
    private static final String CONFIG = "{96 cafebeef 23007 ";
    /** Release that the stand-in reports. */
    private static final int RELEASE = 22809;
    private static final int UNDEFINED = Integer.MIN_VALUE;
    private static final MemorySegment SEND = DeviceSegments.of(0x700000000000L, 1 << 20);
    private static final MemorySegment RECEIVE = DeviceSegments.of(0x700000100000L, 1 << 20);

    private Stubs stubs;
    private NcclLibrary nccl;

    @BeforeEach
    void load() {
        stubs = Stubs.load();
        nccl = stubs.nccl;
    }

    private void assertCalls(String... expected) {
        assertEquals(List.of(expected), stubs.calls());
    }

    private static String handle(NcclCommunicator communicator) {
        return "0x" + Long.toHexString(communicator.handle.enter().address()) + exit(communicator);
    }

    private static String exit(NcclCommunicator communicator) {
        communicator.handle.exit();
        return "";
    }

    private static String handle(CudaStream stream) {
        return "0x" + Long.toHexString(stream.handle().address().address());
    }

    static UniqueId id(int first) {
        byte[] bytes = new byte[UniqueId.BYTES];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) (first + i);
        }
        return UniqueId.of(bytes);
    }

    @Test
    void library() {
        assertEquals(22809, nccl.version());
        assertEquals("2.28.9", nccl.versionText());
        assertEquals(new NativeLibrary.Report("NCCL", stubs.ncclStub.path(), "2.28.9", null, false, List.of()),
                NcclLibrary.probe(null));
        byte[] drawn = nccl.newUniqueId().toBytes();
        for (int i = 0; i < drawn.length; i++) {
            assertEquals((byte) (i * 7 + 3), drawn[i], "byte " + i);
        }
        assertCalls("ncclGetVersion", "ncclGetVersion", "ncclGetVersion", "ncclGetUniqueId");
    }

    @Test
    void theUniqueIdIsPassedByValueAndTheRankHasItsDevice() {
        UniqueId id = id(0x81);
        NcclCommunicator communicator = nccl.join(stubs.device(), id, 2, 1);
        assertEquals(List.of("cudaGetDeviceCount", "cudaGetDevice", "cudaSetDevice 1", "cudaSetDevice 0"),
                stubs.cudaStub.allCalls());
        assertCalls("ncclCommInitRank 2 " + id.toHex() + " 1");
        assertEquals(1, communicator.rank());
        assertEquals(2, communicator.size());
        communicator.close();
        assertThrows(IllegalArgumentException.class, () -> nccl.join(stubs.device(), id, 2, 2));
        assertThrows(IllegalArgumentException.class, () -> nccl.join(stubs.device(), id, 2, -1));
    }

    @Test
    void everyOptionHasItsFieldAndTheOthersStayUndefined() {
        NcclConfig all = NcclConfig.DEFAULT.withNetName("Socket").withCommunicatorName("world");
        for (Option option : Option.values()) {
            all = all.with(option, 100 + option.ordinal());
        }
        UniqueId id = id(1);
        stubs.ncclStub.release(23007);
        nccl.join(stubs.device(), id, 2, 0, all);
        nccl.join(stubs.device(), id, 2, 0, NcclConfig.DEFAULT);
        stubs.ncclStub.release(RELEASE);
        String join = "ncclCommInitRankConfig 2 " + id.toHex() + " 0 ";
        int u = UNDEFINED;
        assertJoins(join + CONFIG
                + "blocking=100 cga=101 min=102 max=103 net=Socket split=104 class=105 name=world collnet=106 cta=107 shrink=108 nvls=109"
                + " channels=110 nvlink=111 graphs=112 contexts=113 peers=114 ordering=115}",
                join + CONFIG + "blocking=" + u + " cga=" + u + " min=" + u + " max=" + u + " net=- split=" + u
                        + " class=" + u + " name=-" + " collnet=" + u + " cta=" + u + " shrink=" + u + " nvls=" + u
                        + " channels=" + u + " nvlink=" + u + " graphs=" + u + " contexts=" + u + " peers=" + u
                        + " ordering=" + u + "}");
    }

    /** Compares the calls with the expected calls. Ignores queries for the version. */
    private void assertJoins(String... expected) {
        assertEquals(List.of(expected),
                stubs.calls().stream().filter(call -> !call.startsWith("ncclGetVersion")).toList());
    }

    @Test
    void anOptionThatTheLoadedNcclWouldIgnoreIsRefused() {
        String message = assertThrows(MillraceException.class,
                () -> nccl.join(stubs.device(), id(1), 2, 0, NcclConfig.DEFAULT.with(Option.RMA_CONTEXTS, 2)))
                .getMessage();
        assertEquals("the option RMA_CONTEXTS is not in the loaded NCCL 2.28.9 (" + stubs.ncclStub.path()
                + "): NCCL 2.29.2 and later have it", message);
    }

    @Test
    void severalIds() {
        nccl.join(stubs.device(), List.of(id(1), id(2), id(3)), 8, 5, NcclConfig.DEFAULT.with(Option.MAX_CTAS, 4));
        String call = stubs.calls().getLast();
        assertTrue(
                call.startsWith("ncclCommInitRankScalable 8 5 3 " + id(1).toHex() + " " + id(3).toHex() + " " + CONFIG)
                        && call.contains(" max=4 "),
                call);
        assertThrows(IllegalArgumentException.class,
                () -> nccl.join(stubs.device(), List.of(), 8, 5, NcclConfig.DEFAULT));
    }

    @Test
    void allRanksOfOneProcess() {
        List<NcclCommunicator> ends = nccl.joinAll(List.of(stubs.cuda.device(1), stubs.cuda.device(0)));
        assertEquals(List.of(0, 1), ends.stream().map(NcclCommunicator::rank).toList());
        assertEquals(List.of(1, 0), ends.stream().map(end -> end.device().index()).toList());
        String first = handle(ends.get(0));
        String second = handle(ends.get(1));
        ends.forEach(NcclCommunicator::close);
        assertCalls("ncclCommInitAll 2 1 0", "ncclCommDestroy " + first, "ncclCommDestroy " + second);
    }

    @Test
    void collectives() {
        NcclCommunicator c = stubs.communicator();
        CudaStream stream = stubs.stream();
        String end = " " + handle(c) + " " + handle(stream);
        stubs.calls();
        c.allReduce(SEND, RECEIVE, 1L << 18, DataType.FLOAT32, ReduceOp.AVG, stream);
        c.reduce(SEND, RECEIVE, 3, DataType.INT64, ReduceOp.MAX, 1, stream);
        c.reduce(SEND, null, 3, DataType.INT64, ReduceOp.MIN, 0, stream);
        c.broadcast(SEND, RECEIVE, 4, DataType.BFLOAT16, 1, stream);
        c.broadcast(MemorySegment.NULL, RECEIVE, 4, DataType.BFLOAT16, 0, stream);
        c.allGather(SEND, RECEIVE, 5, DataType.UINT8, stream);
        c.reduceScatter(SEND, RECEIVE, 6, DataType.FLOAT16, ReduceOp.PROD, stream);
        c.allToAll(SEND, RECEIVE, 7, DataType.FLOAT64, stream);
        c.gather(SEND, RECEIVE, 8, DataType.FLOAT8_E4M3, 1, stream);
        c.scatter(null, RECEIVE, 9, DataType.FLOAT8_E5M2, 0, stream);
        c.send(SEND.asSlice(16), 10, DataType.UINT32, 0, stream);
        c.receive(RECEIVE.asSlice(32), 0, DataType.UINT64, 0, stream);
        String both = " 0x700000000000 0x700000100000 ";
        assertCalls("ncclAllReduce" + both + "262144 7 4" + end, "ncclReduce" + both + "3 4 2 1" + end,
                "ncclReduce 0x700000000000 (nil) 3 4 3 0" + end, "ncclBroadcast" + both + "4 9 1" + end,
                "ncclBroadcast (nil) 0x700000100000 4 9 0" + end, "ncclAllGather" + both + "5 1" + end,
                "ncclReduceScatter" + both + "6 6 1" + end, "ncclAlltoAll" + both + "7 8" + end,
                "ncclGather" + both + "8 10 1" + end, "ncclScatter (nil) 0x700000100000 9 11 0" + end,
                "ncclSend 0x700000000010 10 3 0" + end, "ncclRecv 0x700000100020 0 5 0" + end);
    }

    @Test
    void scaledSums() {
        NcclCommunicator c = stubs.communicator();
        CudaStream stream = stubs.stream();
        String h = handle(c);
        String end = " " + h + " " + handle(stream);
        stubs.calls();
        c.allReduce(SEND, RECEIVE, 2, DataType.FLOAT32, new ReduceOp.PreMulSum(0.5), stream);
        assertCalls("ncclRedOpCreatePreMulSum 0000003f00000000 7 1 " + h,
                "ncclAllReduce 0x700000000000 0x700000100000 2 7 7" + end, "ncclRedOpDestroy 7 " + h);
        c.reduce(SEND, RECEIVE, 2, DataType.INT32, new ReduceOp.PreMulSum(-3), 1, stream);
        c.reduceScatter(SEND, RECEIVE, 2, DataType.FLOAT64, new ReduceOp.PreMulSum(2), stream);
        assertCalls("ncclRedOpCreatePreMulSum fdffffff00000000 2 1 " + h,
                "ncclReduce 0x700000000000 0x700000100000 2 2 7 1" + end, "ncclRedOpDestroy 7 " + h,
                "ncclRedOpCreatePreMulSum 0000000000000040 8 1 " + h,
                "ncclReduceScatter 0x700000000000 0x700000100000 2 8 7" + end, "ncclRedOpDestroy 7 " + h);
        c.allReduce(SEND, RECEIVE, 2, DataType.FLOAT8_E4M3, new ReduceOp.PreMulSum(3), stream);
        c.allReduce(SEND, RECEIVE, 2, DataType.FLOAT8_E5M2, new ReduceOp.PreMulSum(3), stream);
        c.allReduce(SEND, RECEIVE, 2, DataType.BFLOAT16, new ReduceOp.PreMulSum(3), stream);
        assertCalls("ncclRedOpCreatePreMulSum 4400000000000000 10 1 " + h,
                "ncclAllReduce 0x700000000000 0x700000100000 2 10 7" + end, "ncclRedOpDestroy 7 " + h,
                "ncclRedOpCreatePreMulSum 4200000000000000 11 1 " + h,
                "ncclAllReduce 0x700000000000 0x700000100000 2 11 7" + end, "ncclRedOpDestroy 7 " + h,
                "ncclRedOpCreatePreMulSum 4040000000000000 9 1 " + h,
                "ncclAllReduce 0x700000000000 0x700000100000 2 9 7" + end, "ncclRedOpDestroy 7 " + h);
    }

    @Test
    void aReductionBelongsToOneCommunicatorAndOneType() {
        NcclCommunicator c = stubs.communicator();
        NcclCommunicator other = stubs.communicator();
        CudaStream stream = stubs.stream();
        String h = handle(c);
        String end = " " + h + " " + handle(stream);
        stubs.calls();
        NcclReduction reduction = c.scaledSum(DeviceSegments.of(0x700000200000L, 2), DataType.FLOAT16, true);
        c.reduce(SEND, RECEIVE, 2, DataType.FLOAT16, reduction, 1, stream);
        c.reduceScatter(SEND, RECEIVE, 2, DataType.FLOAT16, reduction, stream);
        assertThrows(IllegalArgumentException.class,
                () -> c.allReduce(SEND, RECEIVE, 2, DataType.FLOAT32, reduction, stream));
        assertThrows(IllegalArgumentException.class,
                () -> other.allReduce(SEND, RECEIVE, 2, DataType.FLOAT16, reduction, stream));
        reduction.close();
        reduction.close();
        assertThrows(IllegalStateException.class,
                () -> c.allReduce(SEND, RECEIVE, 2, DataType.FLOAT16, reduction, stream));
        assertCalls("ncclRedOpCreatePreMulSum device 6 0 " + h,
                "ncclReduce 0x700000000000 0x700000100000 2 6 7 1" + end,
                "ncclReduceScatter 0x700000000000 0x700000100000 2 6 7" + end, "ncclRedOpDestroy 7 " + h);
    }

    @Test
    void splitAndShrink() {
        NcclCommunicator c = stubs.communicator();
        String h = handle(c);
        NcclCommunicator half = c.split(3, -7, null).orElseThrow();
        assertTrue(c.split(-5, 0, null).isEmpty());
        NcclCommunicator rest = c.shrink(new int[] {4, 9, 6}, true, NcclConfig.DEFAULT.with(Option.SHRINK_SHARE, 0));
        assertEquals(3, half.rank());
        assertEquals(3, half.rank());
        assertEquals(4, half.size());
        assertEquals(1, half.cudaDevice());
        String s = handle(half);
        String r = handle(rest);
        half.close();
        c.shrink(new int[] {0}, false, null);
        List<String> calls = stubs.calls().stream().filter(call -> !call.startsWith("ncclGetVersion")).toList();
        assertEquals(List.of("ncclCommSplit " + h + " 3 -7 null", "ncclCommSplit " + h + " -1 0 null"),
                calls.subList(0, 2));
        assertTrue(calls.get(2).startsWith("ncclCommShrink " + h + " 4 6 3 " + CONFIG)
                && calls.get(2).contains(" shrink=0 ") && calls.get(2).endsWith("} 1"), calls.get(2));
        assertEquals(List.of("ncclCommUserRank " + s, "ncclCommCount " + s, "ncclCommCuDevice " + s,
                "ncclCommDestroy " + s, "ncclCommShrink " + h + " 0 0 1 null 0"), calls.subList(3, calls.size()));
        rest.abort();
        rest.abort();
        rest.close();
        assertCalls("ncclCommAbort " + r);
    }

    @Test
    void growth() {
        NcclCommunicator c = stubs.communicator();
        String h = handle(c);
        UniqueId drawn = c.newUniqueId();
        assertEquals("5a".repeat(UniqueId.BYTES), drawn.toHex());
        NcclCommunicator root = c.grow(6, drawn, null);
        NcclCommunicator other = c.grow(6, null, NcclConfig.DEFAULT);
        assertEquals(4, root.size()); // the stand-in returns 4, whatever the argument
        assertEquals(3, other.rank());
        NcclCommunicator added = nccl.joinGrowing(stubs.device(), drawn, 6, 5, NcclConfig.DEFAULT);
        assertEquals(List.of(5, 6), List.of(added.rank(), added.size()));
        List<String> calls = stubs.calls();
        assertEquals("ncclCommGetUniqueId " + h, calls.get(0));
        assertEquals("ncclCommGrow " + h + " 6 " + drawn.toHex() + " -1 null", calls.get(1));
        assertTrue(calls.get(2).startsWith("ncclCommGrow " + h + " 6 null -1 " + CONFIG), calls.get(2));
        assertTrue(calls.getLast().startsWith("ncclCommGrow (nil) 6 " + drawn.toHex() + " 5 " + CONFIG),
                calls.getLast());
        assertThrows(IllegalArgumentException.class, () -> c.grow(2, drawn, null));
        assertThrows(IllegalArgumentException.class,
                () -> nccl.joinGrowing(stubs.device(), drawn, 6, 6, NcclConfig.DEFAULT));
        stubs.ncclStub.fail("ncclCommGrow", 8, 1);
        NcclException late = assertThrows(NcclException.class, () -> c.grow(6, drawn, null));
        assertEquals(NcclResult.TIMEOUT, late.result());
        assertTrue(late.getMessage().contains("ncclTimeout (8)"), late.getMessage());
    }

    @Test
    void properties() {
        NcclCommunicator c = stubs.communicator();
        assertTrue(assertThrows(MillraceException.class, c::properties).getMessage().contains("NCCL 2.29.7 and later"));
        for (int release : List.of(22907, 23008)) {
            stubs.ncclStub.release(release);
            assertEquals(new NcclProperties(1, 2, 3, 4, true, false, NcclProperties.Gin.GDAKI, null, 5, true),
                    c.properties());
        }
        stubs.ncclStub.release(RELEASE);
        String call = "ncclCommQueryProperties " + handle(c) + " {56 cafebeef ";
        List<String> calls = stubs.calls();
        assertTrue(calls.containsAll(List.of(call + "22907}", call + "23007}")), calls.toString());
    }

    @Test
    void ncclsOwnMemory() {
        NcclCommunicator c = stubs.communicator();
        String h = handle(c);
        NcclMemory own = c.memory();
        assertEquals(0x500000000L, own.bytes(NcclMemory.Kind.SUSPENDABLE));
        assertEquals(0x500000002L, own.bytes(NcclMemory.Kind.PERSISTENT));
        assertEquals(0x500000003L, own.bytes(NcclMemory.Kind.TOTAL));
        assertTrue(own.isSuspended());
        own.suspend();
        own.resume();
        String stats = "ncclCommMemStats " + h + " ";
        assertCalls(stats + 0, stats + 2, stats + 3, stats + 1, "ncclCommSuspend " + h + " 1", "ncclCommResume " + h);
    }

    @Test
    void putsAndSignals() {
        NcclCommunicator c = stubs.communicator();
        NcclCommunicator other = stubs.communicator();
        CudaStream stream = stubs.stream();
        String end = " " + handle(c) + " " + handle(stream);
        NcclWindow window = c.registerWindow(SEND, false);
        stubs.calls();
        c.putSignal(SEND, 10, DataType.FLOAT32, 1, window, 1L << 33, 3, 2, stream);
        c.signal(0, 4, 1, stream);
        c.waitSignals(List.of(new NcclCommunicator.Awaited(1, 2, 3, 4), new NcclCommunicator.Awaited(5, 6, 7, 8)),
                stream);
        assertEquals(0x710000001000L, window.memoryAddress());
        assertCalls("ncclPutSignal 0x700000000000 10 7 1 0x3170 8589934592 3 2 0" + end, "ncclSignal 0 4 1 0" + end,
                "ncclWaitSignal 2 {5 6 7 8}" + end, "ncclWinGetUserPtr " + handle(c) + " 0x3170");
        assertThrows(IllegalArgumentException.class,
                () -> c.putSignal(SEND, 10, DataType.FLOAT32, 1, window, -1, 3, 2, stream));
        assertThrows(IllegalArgumentException.class,
                () -> other.putSignal(SEND, 10, DataType.FLOAT32, 1, window, 0, 3, 2, stream));
        assertThrows(IllegalArgumentException.class,
                () -> c.putSignal(SEND, 1L << 20, DataType.FLOAT32, 1, window, 0, 3, 2, stream));
        String old = assertThrows(MillraceException.class,
                () -> c.registerWindow(SEND, Set.of(NcclWindow.Flag.STRICT_ORDERING))).getMessage();
        assertTrue(old.startsWith("the window flag STRICT_ORDERING is not in the loaded NCCL 2.28.9"), old);
        stubs.ncclStub.release(23007);
        NcclWindow strict = c.registerWindow(SEND, Set.of(NcclWindow.Flag.SYMMETRIC, NcclWindow.Flag.STRICT_ORDERING));
        stubs.ncclStub.release(RELEASE);
        assertTrue(stubs.calls().contains("ncclCommWindowRegister " + handle(c) + " 0x700000000000 1048576 3"));
        strict.close();
        window.close();
        assertThrows(IllegalStateException.class,
                () -> c.putSignal(SEND, 10, DataType.FLOAT32, 1, window, 0, 3, 2, stream));
    }

    @Test
    void parameters() {
        NcclParameters parameters = nccl.parameters();
        assertEquals(List.of("I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "NCCL_TEXT"), parameters.names());
        assertEquals(Optional.of("17"), parameters.text("NCCL_P2P_LL_THRESHOLD"));
        assertEquals(Optional.empty(), parameters.text("no such"));
        assertEquals(Optional.empty(), parameters.bind("no such"));
        for (String signed : List.of("I8", "I16", "I32", "I64")) {
            assertEquals(BigInteger.valueOf(-2), parameters.bind(signed).orElseThrow().integer().orElseThrow());
        }
        List<String> unsigned = List.of("U8", "U16", "U32", "U64");
        for (int i = 0; i < unsigned.size(); i++) {
            assertEquals(BigInteger.ONE.shiftLeft(8 << i).subtract(BigInteger.TWO),
                    parameters.bind(unsigned.get(i)).orElseThrow().integer().orElseThrow());
        }
        NcclParameters.Parameter text = parameters.bind("NCCL_TEXT").orElseThrow();
        assertEquals(Optional.empty(), text.integer());
        assertEquals(Optional.of("some text"), text.text());
        assertEquals(Optional.empty(), parameters.bind("I8").orElseThrow().text());
        assertArrayEquals(new byte[] {'a', 'b', 'c'}, text.bytes());
        parameters.print();
        assertEquals("ncclParamDumpAll", stubs.calls().getLast());
        stubs.ncclStub.fail("ncclParamGetI64", 3, 1);
        assertThrows(NcclException.class, () -> parameters.bind("I64").orElseThrow().integer());
    }

    @Test
    void memory() {
        NcclCommunicator c = stubs.communicator();
        String h = handle(c);
        DeviceMemory memory = nccl.allocate(stubs.device(), 8192);
        assertEquals(0x710000000000L, memory.address());
        Registration registration = c.register(memory.segment());
        NcclWindow window = c.registerWindow(memory.slice(4096, 4096), true);
        NcclWindow plain = c.registerWindow(memory.slice(1, 16), false);
        assertEquals(0x3170, window.address());
        assertThrows(IllegalArgumentException.class, () -> c.registerWindow(memory.slice(8, 16), true));
        registration.close();
        registration.close();
        window.close();
        window.close();
        memory.close();
        assertCalls("ncclMemAlloc 8192", "ncclCommRegister " + h + " 0x710000000000 8192",
                "ncclCommWindowRegister " + h + " 0x710000001000 4096 1",
                "ncclCommWindowRegister " + h + " 0x710000000001 16 0", "ncclCommDeregister " + h + " 0x8e9",
                "ncclCommWindowDeregister " + h + " 0x3170", "ncclMemFree 0x710000000000");
        c.close();
        plain.close();
        assertCalls("ncclCommDestroy " + h);
    }

    @Test
    void deviceCommunicators() {
        NcclCommunicator c = stubs.communicator();
        String h = handle(c);
        NcclDeviceCommunicator.Requirements some = new NcclDeviceCommunicator.Requirements(1, 16, 4, 3);
        NcclDeviceCommunicator device = c.newDeviceCommunicator(some);
        assertEquals(List.of(1, 2, 4), List.of(device.rank(), device.size(), device.contexts()));
        assertEquals(200, device.bytes().byteSize());
        assertEquals(200, device.type().byteSize());
        device.requireBytes(200);
        assertThrows(MillraceException.class, () -> device.requireBytes(224));
        device.close();
        device.close();
        assertThrows(IllegalStateException.class, device::bytes);
        List<String> calls = stubs.calls().stream().filter(call -> !call.startsWith("ncclGetVersion")).toList();
        assertEquals(List.of("ncclDevCommCreate " + h + " {barriers=1 force=1 contexts=3 signals=16 counters=4}",
                "ncclDevCommDestroy " + h + " 1"), calls);
        assertThrows(IllegalArgumentException.class, () -> new NcclDeviceCommunicator.Requirements(0, -1, 0, 0));
    }

    @Test
    void deviceCommunicatorsOfEachRelease() {
        deviceCommunicator(22809, 22809, 200, "{barriers=0 force=1 contexts=0 signals=2 counters=0}");
        deviceCommunicator(22903, 22902, 200,
                "{72 cafebeef 22902 barriers=0 force=1 contexts=0 signals=2 counters=0 connection=0 class=0 strong=0 address=0}");
        deviceCommunicator(22907, 22907, 224,
                "{88 cafebeef 22907 barriers=0 force=0 contexts=0 signals=2 counters=0 connection=1 class=-2147483648 strong=0 address=0}");
        deviceCommunicator(23007, 23004, 240,
                "{96 cafebeef 23004 barriers=0 force=0 contexts=0 signals=2 counters=0 connection=1 class=-2147483648 strong=1 address=1}");
    }

    private void deviceCommunicator(int loaded, int compiledWith, long bytes, String requirements) {
        NcclCommunicator c = stubs.communicator();
        stubs.ncclStub.release(loaded);
        try (NcclDeviceCommunicator device =
                c.newDeviceCommunicator(new NcclDeviceCommunicator.Requirements(0, 2, 0, 0), compiledWith)) {
            assertEquals(bytes, device.bytes().byteSize());
            assertEquals(List.of(1, 2, 4), List.of(device.rank(), device.size(), device.contexts()));
            List<String> calls = stubs.calls();
            assertTrue(calls.contains("ncclDevCommCreate " + handle(c) + " " + requirements), calls.toString());
        } finally {
            stubs.ncclStub.release(RELEASE);
        }
    }

    @Test
    void impossibleDeviceCommunicatorsAreRefused() {
        refusedDeviceCommunicator(22809, 22907, "cannot run with the loaded NCCL 2.28.9");
        refusedDeviceCommunicator(23007, 22809, "cannot run with the loaded NCCL 2.30.7");
        refusedDeviceCommunicator(23100, 23100, "2.31.0 is not known here");
        refusedDeviceCommunicator(22803, 22803, "2.28.3 is not known here");
    }

    private void refusedDeviceCommunicator(int loaded, int compiledWith, String why) {
        NcclCommunicator c = stubs.communicator();
        stubs.ncclStub.release(loaded);
        try {
            String message = assertThrows(MillraceException.class,
                    () -> c.newDeviceCommunicator(new NcclDeviceCommunicator.Requirements(0, 2, 0, 0), compiledWith))
                    .getMessage();
            assertTrue(message.contains(why), message);
        } finally {
            stubs.ncclStub.release(RELEASE);
        }
    }

    @Test
    void groups() {
        NcclCommunicator c = stubs.communicator();
        CudaStream stream = stubs.stream();
        String end = " " + handle(c) + " " + handle(stream);
        stubs.calls();
        NcclGroup group = nccl.group();
        c.send(SEND, 1, DataType.INT8, 0, stream);
        c.receive(RECEIVE, 1, DataType.INT8, 0, stream);
        group.close();
        group.close();
        assertCalls("ncclGroupStart", "ncclSend 0x700000000000 1 0 0" + end, "ncclRecv 0x700000100000 1 0 0" + end,
                "ncclGroupEnd");
        NcclGroup simulated = nccl.group();
        assertEquals(12.5f, simulated.simulate());
        assertThrows(IllegalStateException.class, simulated::simulate);
        simulated.close();
        assertCalls("ncclGroupStart", "ncclGroupSimulateEnd 24 74685283 23007 -1.0");
        c.finish();
        c.revoke();
        assertEquals(NcclResult.SUCCESS, c.asyncError());
        String h = handle(c);
        assertCalls("ncclCommFinalize " + h, "ncclCommRevoke " + h + " 0", "ncclCommGetAsyncError " + h);
    }

    @Test
    void failuresStateCallRankCodeAndNcclsText() {
        NcclCommunicator c = stubs.communicator();
        CudaStream stream = stubs.stream();
        String h = handle(c);
        stubs.ncclStub.fail("ncclAllReduce", 2, 1);
        NcclException failure = assertThrows(NcclException.class,
                () -> c.allReduce(SEND, RECEIVE, 1, DataType.INT8, ReduceOp.SUM, stream));
        assertEquals("ncclAllReduce", failure.call());
        assertEquals(NcclResult.SYSTEM_ERROR, failure.result());
        assertTrue(failure.getMessage()
                .startsWith("ncclAllReduce failed on rank 1 of 2, CUDA device 1: ncclSystemError (2), unhandled system "
                        + "error. NCCL reports: net.cc:17 connect to 10.0.0.7 failed; Call to connect returned "
                        + "Connection refused."),
                failure.getMessage());
        assertTrue(failure.getMessage().contains("NCCL_SOCKET_IFNAME"), failure.getMessage());
        List<String> calls = stubs.calls();
        assertEquals(List.of("ncclGetErrorString 2", "ncclGetLastError " + h), calls.subList(1, calls.size()));
        stubs.ncclStub.fail("ncclCommInitRank", 1, 1);
        String init = assertThrows(NcclException.class, () -> nccl.join(stubs.device(), id(1), 4, 3)).getMessage();
        assertTrue(init.startsWith("ncclCommInitRank failed on rank 3 of 4, CUDA device 1: ncclUnhandledCudaError (1)"),
                init);
        assertEquals(List.of("cudaSetDevice 1", "cudaSetDevice 0"),
                stubs.cudaStub.allCalls().stream().filter(call -> call.startsWith("cudaSet")).toList().subList(0, 2));
        stubs.ncclStub.fail("ncclGroupEnd", 77, 1);
        NcclGroup group = nccl.group();
        NcclException unknown = assertThrows(NcclException.class, group::close);
        assertEquals(77, unknown.code());
        assertTrue(unknown.getMessage().contains("(77)"), unknown.getMessage());
    }

    @Test
    @Order(Integer.MAX_VALUE)
    void everyFunctionWasCalled() {
        List<String> missing = NcclFunction.ALL.stream()
                .map(NcclFunction::symbol)
                .filter(symbol -> !stubs.ncclStub.everCalled().contains(symbol))
                .toList();
        assertEquals(List.of(), missing, "functions that are bound, but that no test of this class calls");
    }
}
