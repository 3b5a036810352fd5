package org.millrace.device;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.AbortFlag;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.KernelChannel;
import org.millrace.abi.KernelLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.abi.kernel.CollectiveWork;
import org.millrace.abi.kernel.KernelArguments;
import org.millrace.abi.kernel.KernelCommunicator;
import org.millrace.abi.kernel.PointToPointWork;
import org.millrace.abi.kernel.WorkBatch;
import org.millrace.device.CollectiveFunction.Algorithm;
import org.millrace.ffi.device.ncclConnInfo;
import org.millrace.ffi.device.ncclDevChannel;
import org.millrace.ffi.device.ncclDevChannelPeer;
import org.millrace.ffi.device.ncclKernelComm;
import org.millrace.ffi.device.ncclRecvMem_v28;
import org.millrace.proxy.spi.ConnectionName;

/**
 * A kernel that libnccl 2.30.7 launches, run by the functions of this package. The class is a Java agent in the
 * plugin's JVM. It passes an upcall to the emulated CUDA of {@code src/test/c/libnccl}. The emulated CUDA then calls
 * {@link #run} for each launch, on the thread of the launch's stream.
 *
 * <p>
 * All structures are read where libnccl has written them. A port begins at the step in {@code ncclConnInfo}. At the end
 * of a launch the new step is stored there, as NCCL's kernels do. Launches in Java and launches in the interpreter of
 * {@code kernels.cpp} can therefore follow each other. The interpreter runs the launches that Java does not run:
 * all-gather-v, sums of products, and batches of more than {@link WorkBatch#MAX_ITEM_BYTES}.
 */
@SuppressWarnings("restricted") // a kernel accesses memory by its address
public final class LaunchedKernel {

    /** NCCL's codes for algorithms and operators, and the interpreter's codes for collectives. */
    private static final int TREE = 0;
    private static final int MIN_MAX = 2;
    private static final int PRE_MUL_SUM = 3;
    private static final Operation[] OPERATIONS = {Operation.SEND_RECEIVE, Operation.ALL_GATHER, Operation.BROADCAST,
            null, Operation.ALL_REDUCE, Operation.REDUCE, Operation.REDUCE_SCATTER};
    private static final ReduceOp.BuiltIn[] OPERATORS =
            {ReduceOp.BuiltIn.SUM, ReduceOp.BuiltIn.PROD, null, null, ReduceOp.BuiltIn.AVG};

    private static final long PEERS = offset(ncclDevChannel.layout(), "peers");
    private static final long SEND = offset(ncclDevChannelPeer.layout(), "send");
    private static final long RECEIVE = offset(ncclDevChannelPeer.layout(), "recv");
    private static final long BUFFERS = offset(ncclConnInfo.layout(), "buffs");
    private static final long TAIL = offset(ncclConnInfo.layout(), "tail");
    private static final long HEAD = offset(ncclConnInfo.layout(), "head");
    private static final long SLOT_BYTES = offset(ncclConnInfo.layout(), "stepSize");
    private static final long SHARED = offset(ncclConnInfo.layout(), "shared");
    private static final long FIFO = offset(ncclConnInfo.layout(), "connFifo");
    private static final long STEP = offset(ncclConnInfo.layout(), "step");
    private static final long ABORT_FLAG = offset(ncclKernelComm.layout(), "abortFlag");
    /**
     * Assumed size of an operand in bytes, larger than any real operand. The real size is unknown, because the work
     * contains only the operand's address.
     */
    private static final long OPERAND_BYTES = 1L << 40;
    private static final int YIELDS = 1000;
    private static final long PAUSE_NANOS = 20_000;
    /**
     * Number of idle passes after which a kernel prints the peers that it waits for. These passes take six seconds or
     * more.
     */
    private static final int HANG_PASSES = 300_000;

    private static final TwoSlices TWO_SLICES = new TwoSlices();
    /** Functions that this process has run. */
    private static final Set<String> RUN = ConcurrentHashMap.newKeySet();
    private static MethodHandle functionOf;
    private static int interpretedRank;

    private final KernelArguments arguments;
    private final KernelCommunicator real;
    private final DeviceCommunicator communicator;
    private final List<Block> blocks = new ArrayList<>();
    private final List<Runnable> stores = new ArrayList<>();

    private LaunchedKernel(KernelArguments arguments, KernelCommunicator real, Arena arena) {
        this.arguments = arguments;
        this.real = real;
        int channels = Long.SIZE - Long.numberOfLeadingZeros(arguments.channelMask());
        communicator = new DeviceCommunicator(arena, real.rank(), new int[real.ranks()], real.layout(),
                real.transferChunk(), channels, WorkBatch.MAX_ITEM_BYTES, 0);
    }

    /** @param interpreted rank whose launches the interpreter runs; -1 for none */
    public static void premain(String interpreted) throws Throwable {
        interpretedRank = Integer.parseInt(interpreted);
        SymbolLookup cuda = SymbolLookup.libraryLookup("libcuda-on-cpu.so", Arena.global());
        Linker linker = Linker.nativeLinker();
        functionOf = linker.downcallHandle(cuda.find("functionOf").orElseThrow(),
                FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS));
        MethodHandle run = MethodHandles.lookup()
                .findStatic(LaunchedKernel.class, "run",
                        MethodType.methodType(int.class, MemorySegment.class, long.class));
        MemorySegment upcall =
                linker.upcallStub(run, FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG), Arena.global());
        cuda.find("runInJava").orElseThrow().reinterpret(ADDRESS.byteSize()).set(ADDRESS, 0, upcall);
    }

    /** Runs a launch to its end. Returns 0 if the interpreter has to run the launch. */
    private static int run(MemorySegment launch, long bytes) {
        try (Arena arena = Arena.ofShared()) {
            KernelArguments arguments = KernelArguments.of(launch.reinterpret(bytes));
            KernelCommunicator real = KernelCommunicator.of(at(arguments.communicator(), KernelCommunicator.BYTES));
            LaunchedKernel kernel = new LaunchedKernel(arguments, real, arena);
            if (real.rank() == interpretedRank || !kernel.canRun()) {
                return 0;
            }
            kernel.addBlocks();
            kernel.runBlocks();
            return 1;
        } catch (Throwable failure) { // An exception of an upcall would end the JVM without a message.
            failure.printStackTrace();
            Runtime.getRuntime().halt(1);
            return 0;
        }
    }

    /**
     * Returns whether Java can run all work of the launch. If so, prints the launch's kind and sets the work FIFO's
     * fill level.
     */
    private boolean canRun() throws Throwable {
        MemorySegment memory = arguments.segment();
        Integer produced = null;
        boolean several = false;
        for (int block = 0; block < Long.bitCount(arguments.channelMask()); block++) {
            int bytes = 0;
            for (int batch = block, jump = 1; jump != 0; batch += jump) {
                long at = KernelArguments.batchOffset(batch);
                int[] function = function(WorkBatch.function(memory, at));
                if (OPERATIONS[function[0]] == null || function[3] == PRE_MUL_SUM) {
                    return false;
                }
                int size = WorkBatch.type(memory, at).itemBytes();
                long items = WorkBatch.offsetBitset(memory, at);
                bytes += Long.bitCount(items) * size;
                if (bytes > WorkBatch.MAX_ITEM_BYTES) {
                    return false;
                }
                int end = WorkBatch.offsetBase(memory, at) + (Long.SIZE - Long.numberOfLeadingZeros(items)) * size;
                produced = produced == null || end - produced > 0 ? end : produced;
                bytes = WorkBatch.nextExtends(memory, at) ? bytes : 0;
                jump = WorkBatch.nextJump(memory, at);
                several |= jump != 0;
            }
        }
        communicator.fifoCounters().producedRelease(produced);
        print("work in " + arguments.storage());
        if (several) {
            print("several batches of a channel");
        }
        return true;
    }

    /** Returns the collective, the algorithm, the protocol, the operator and the type of a function. */
    private static int[] function(int id) throws Throwable {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment numbers = arena.allocate(JAVA_INT, 5);
            int _ = (int) functionOf.invokeExact(id, numbers);
            return numbers.toArray(JAVA_INT);
        }
    }

    private void addBlocks() throws Throwable {
        WorkReader reader = new WorkReader(communicator.fifoCounters());
        for (int block = 0; block < Long.bitCount(arguments.channelMask()); block++) {
            DeviceChannel channel = connectedChannel(arguments.channel(block));
            reader.begin(arguments, block);
            while (reader.next()) {
                int[] function = function(reader.function());
                for (int i = 0; i < reader.items(); i++) {
                    MemorySegment item = reader.item(i);
                    Block added = function[0] == 0 ? transfer(item, channel) : collective(function, item, channel);
                    if (added != null) {
                        blocks.add(added);
                    }
                }
            }
        }
    }

    /**
     * Returns a block for a send and a receive. For a copy within the rank, returns null except on the channel of the
     * copy's first part.
     */
    private @Nullable Block transfer(MemorySegment item, DeviceChannel channel) {
        PointToPointWork work = PointToPointWork.of(item);
        int number = FunctionNumber.pack(Operation.SEND_RECEIVE, Algorithm.DIRECT, Protocol.SIMPLE, DataType.UINT8,
                ReduceOp.BuiltIn.SUM);
        print(Operation.SEND_RECEIVE.ncclName());
        return work.sendRank() == real.rank() && work.part(channel.number()) != 0 ? null
                : FunctionTable.STANDARD.of(number)
                        .block(number, item, communicator, channel, memory(work.sendAddress(), work.receiveAddress()));
    }

    private Block collective(int[] function, MemorySegment item, DeviceChannel channel) {
        CollectiveWork work = CollectiveWork.of(item);
        Operation operation = OPERATIONS[function[0]];
        Algorithm algorithm =
                function[1] == TREE && operation == Operation.ALL_REDUCE ? Algorithm.TREE : Algorithm.RING;
        Protocol protocol = Protocol.of(function[2]);
        ReduceOp operator = function[3] != MIN_MAX ? OPERATORS[function[3]]
                : (work.reductionArgument() & 1) != 0 ? ReduceOp.BuiltIn.MAX : ReduceOp.BuiltIn.MIN;
        DataType type = operation.reduces() ? DataType.ofCode(function[4]) : DataType.UINT8;
        print(operation.ncclName() + "/" + algorithm + "/" + protocol);
        int number = FunctionNumber.pack(operation, algorithm, protocol, type, operator);
        boolean twoSlices = algorithm == Algorithm.RING && TwoSlices.supports(operation);
        return (twoSlices ? TWO_SLICES : FunctionTable.STANDARD.of(number)).block(number, item, communicator, channel,
                memory(work.sendBuffer(), work.receiveBuffer()));
    }

    private void print(String function) {
        if (RUN.add(function)) {
            System.out.println("rank " + real.rank() + " in Java: " + function);
        }
    }

    private static KernelMemory memory(long input, long output) {
        return new KernelMemory(new MemorySegment[] {at(input, OPERAND_BYTES), at(output, OPERAND_BYTES)});
    }

    /** Returns a channel with the neighbors and the connections of libnccl's channel. */
    private DeviceChannel connectedChannel(int number) {
        DeviceChannel channel = communicator.channel(number);
        MemorySegment memory = at(real.channels() + number * KernelChannel.BYTES, KernelChannel.BYTES);
        KernelChannel struct = KernelChannel.of(memory);
        int ranks = real.ranks();
        int[] ring = new int[ranks];
        for (int ahead = 0; ahead < ranks; ahead++) {
            ring[(struct.index() + ahead) % ranks] =
                    at(struct.userRanks(), (long) ranks * Integer.BYTES).getAtIndex(JAVA_INT, ahead);
        }
        channel.ring(ring);
        if (channel.view().previous() != struct.previous() || channel.view().next() != struct.next()) {
            throw new IllegalStateException("the neighbors in ncclRing are not those in userRanks");
        }
        channel.view().tree(struct.depth(), struct.up(), struct.down(0), struct.down(1), struct.down(2));
        MemorySegment peers = at(memory.get(JAVA_LONG, PEERS), (long) ranks * Long.BYTES);
        for (int peer = 0; peer < ranks; peer++) {
            long address = peers.getAtIndex(JAVA_LONG, peer);
            for (int index = 0; index < 2 && peer != real.rank() && address != 0; index++) {
                long of = index * ncclConnInfo.sizeof();
                connect(at(address + SEND + of, ncclConnInfo.sizeof()), channel, peer, index, true);
                connect(at(address + RECEIVE + of, ncclConnInfo.sizeof()), channel, peer, index, false);
            }
        }
        return channel;
    }

    private void connect(MemorySegment end, DeviceChannel channel, int peer, int index, boolean sends) {
        long buffers = end.get(JAVA_LONG, BUFFERS);
        if (buffers == 0) {
            return;
        }
        ConnectionLayout layout = communicator.layout();
        boolean whole =
                end.get(JAVA_INT, SLOT_BYTES) == layout.slotBytes(Protocol.SIMPLE) && end.get(JAVA_INT, SHARED) == 0
                        && end.get(JAVA_LONG, FIFO) == end.get(JAVA_LONG, TAIL) + ncclRecvMem_v28.connFifo$offset();
        for (Protocol protocol : Protocol.values()) {
            long buffer = end.get(JAVA_LONG, BUFFERS + (long) protocol.id() * Long.BYTES);
            whole &= buffer == buffers + layout.bufferOffset(protocol);
        }
        if (!whole) {
            throw new IllegalStateException("the memory of a connection with rank " + peer + " is not in one piece");
        }
        long step = end.get(JAVA_LONG, STEP);
        ConnectionInfo info = new ConnectionInfo(layout, at(buffers, layout.sendMemOffset()),
                SendMem.of(at(end.get(JAVA_LONG, HEAD), SendMem.BYTES)),
                RecvMem.of(at(end.get(JAVA_LONG, TAIL), RecvMem.BYTES), KernelLayout.V28), step, null, null, null);
        ConnectionName name = ConnectionName.ofRing(real.rank(), peer, channel.number(), sends);
        Port port;
        if (sends) {
            SendPort sender = new SendPort(name, info);
            channel.send(peer, index).connect(sender);
            port = sender;
        } else {
            ReceivePort receiver = new ReceivePort(name, info);
            channel.receive(peer, index).connect(receiver);
            port = receiver;
        }
        stores.add(() -> {
            if (port.step() != step) {
                end.set(JAVA_LONG, STEP, port.step());
            }
        });
    }

    private void runBlocks() {
        AbortFlag aborted = AbortFlag
                .of(at(at(real.address(), KernelCommunicator.BYTES).get(JAVA_LONG, ABORT_FLAG), AbortFlag.BYTES));
        blocks.forEach(Block::begin);
        for (int idle = 0; !blocks.isEmpty(); idle++) {
            for (Block block : blocks) {
                idle = block.progress() > 0 ? 0 : idle;
            }
            blocks.removeIf(Block::done);
            if (aborted.raisedAcquire()) {
                return;
            }
            if (idle == HANG_PASSES) {
                blocks.forEach(block -> System.out.println("rank " + real.rank() + " in Java: " + block.waitingFor()));
            }
            if (idle > YIELDS) {
                LockSupport.parkNanos(PAUSE_NANOS);
            } else if (idle > 0) {
                Thread.yield();
            }
        }
        stores.forEach(Runnable::run);
    }

    /**
     * NCCL's division of chunks around a ring: two slices of two steps, for operands of any size. The proxy of libnccl
     * counts these steps. The functions of the emulated device divide small chunks differently, and let two ranks
     * exchange small operands directly.
     */
    private static final class TwoSlices extends CollectiveFunction {

        static boolean supports(Operation operation) {
            return operation == Operation.ALL_REDUCE || operation == Operation.ALL_GATHER
                    || operation == Operation.REDUCE_SCATTER;
        }

        @Override
        public List<ChannelTask> tasks(int number, CollectiveWork work, DeviceCommunicator communicator,
                DeviceChannel channel) {
            int ranks = communicator.ranks();
            ChunkShape shape = ChunkShape.TWO_SLICES.in(FunctionNumber.protocol(number));
            ChannelPart part = part(number, work, communicator, channel, shape);
            ChunkSchedule schedule = switch (FunctionNumber.operation(number)) {
                case ALL_REDUCE -> RingFunction.RingAllReduce.schedule(part, channel.view().index(), ranks);
                case ALL_GATHER -> RingFunction.RingAllGather.schedule(part, channel, ranks, work.count(),
                        work.sendBuffer() == work.receiveBuffer() + communicator.rank() * work.count());
                default -> RingFunction.RingReduceScatter.schedule(part, channel, ranks, work.count());
            };
            return List.of(ChannelTask.between(channel.view().previous(), schedule, shape, KernelChannel.COLLECTIVE,
                    channel.view().next()));
        }
    }

    private static MemorySegment at(long address, long bytes) {
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    private static long offset(GroupLayout layout, String field) {
        return layout.byteOffset(groupElement(field));
    }
}
