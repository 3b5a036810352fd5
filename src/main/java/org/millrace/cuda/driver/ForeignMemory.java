package org.millrace.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntUnaryOperator;
import org.millrace.MillraceException;
import org.millrace.cuda.driver.CudaDriver.Function;
import org.millrace.foreign.CFunction;

/**
 * Device memory of another process of this host, mapped into this process. One copy then moves bytes from GPU to GPU.
 * Memory can be shared in this way only if {@code cuMemCreate} created it with a file descriptor as its handle, for
 * example in {@code ncclMemAlloc}.
 *
 * <p>
 * The other process keeps the file descriptor open. This process fetches a duplicate of the descriptor
 * ({@code pidfd_getfd}, Linux 5.6). The call requires the right to trace the other process. A process of root has this
 * right. Another process of the same user has this right if Yama's {@code ptrace_scope} is 0.
 */
public final class ForeignMemory implements AutoCloseable {

    private static final int FILE_DESCRIPTOR = 1; // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    private static final int DMA_BUF = 1; // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
    private static final int ON_DEVICE = 1; // CU_MEM_LOCATION_TYPE_DEVICE
    private static final int READ_AND_WRITE = 3; // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    private static final long PIDFD_OPEN = 434;
    private static final long PIDFD_GETFD = 438;
    private static final StructLayout ACCESS =
            MemoryLayout.structLayout(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT);
    private static final CFunction SYSCALL = CFunction.named("syscall");
    private static final CFunction CLOSE = CFunction.named("close");

    /**
     * Maximum number of physical segments of one range of addresses. For each physical segment, a file descriptor stays
     * open as long as peers map the segment.
     */
    public static final int MAX_SEGMENTS = 256;

    private final CudaDriver driver;
    private final long base;
    private final long reserved;
    /** Number of bytes of each mapped physical segment, in the order of the addresses. */
    private final long[] mapped;
    private final long offset;

    private ForeignMemory(CudaDriver driver, long base, long reserved, long[] mapped, long offset) {
        this.driver = driver;
        this.base = base;
        this.reserved = reserved;
        this.mapped = mapped;
        this.offset = offset;
    }

    /**
     * Description of memory of a process. The process sends the description to other processes that map the memory.
     *
     * @param process    number of the process that owns the memory
     * @param descriptor file descriptor of the memory in the owning process. The descriptor stays open as long as
     *                   another process may still map the memory.
     * @param allocated  size of the whole allocation in bytes
     * @param offset     offset of the memory in the allocation, in bytes
     */
    public record Ticket(long process, int descriptor, long allocated, long offset) implements AutoCloseable {
        /** Closes the descriptor. Only the process that created the ticket may call this method. */
        @Override
        public void close() {
            closeDescriptor(descriptor);
        }
    }

    /**
     * {@return a ticket for memory of this process; the memory must lie in one physical segment}
     *
     * @throws MillraceException if memory of this kind cannot be shared
     */
    public static Ticket export(CudaDriver driver, long address) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG, 3);
            driver.checkedCall(Function.GET_ADDRESS_RANGE, out.address(), out.address() + Long.BYTES, address);
            long base = out.getAtIndex(ValueLayout.JAVA_LONG, 0);
            long bytes = out.getAtIndex(ValueLayout.JAVA_LONG, 1);
            driver.checkedCall(Function.RETAIN, out.address(), base);
            long handle = out.getAtIndex(ValueLayout.JAVA_LONG, 0);
            try {
                driver.checkedCall(Function.EXPORT, out.address(), handle, FILE_DESCRIPTOR, 0L);
            } finally {
                driver.call(Function.RELEASE, handle);
            }
            return new Ticket(ProcessHandle.current().pid(), out.get(ValueLayout.JAVA_INT, 0), bytes, address - base);
        }
    }

    /**
     * Passes a DMA-BUF file descriptor for memory of this process to a function. Through this descriptor, another
     * driver can access the memory, for example the driver of a network card.
     *
     * @param driver the driver's functions; the memory's device must be current
     * @param use    function that receives the descriptor, which is closed when the function returns
     * @return result of {@code use}; -1 if the driver offers no DMA-BUF for this memory
     */
    public static int lendDmaBuf(CudaDriver driver, long address, long bytes, IntUnaryOperator use) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
            if (driver.call(Function.RANGE_HANDLE, out.address(), address, bytes, DMA_BUF, 0L) != 0) {
                return -1;
            }
            int descriptor = out.get(ValueLayout.JAVA_INT, 0);
            try {
                return use.applyAsInt(descriptor);
            } finally {
                closeDescriptor(descriptor);
            }
        }
    }

    /**
     * {@return tickets for a range of addresses of this process, one for each physical segment, in the order of the
     * addresses; a range may consist of several physical segments, including segments of host memory}
     *
     * @throws MillraceException if a part of the range cannot be shared
     */
    public static List<Ticket> export(CudaDriver driver, long address, long bytes) {
        List<Ticket> tickets = new ArrayList<>();
        boolean complete = false;
        try {
            for (long at = address; at < address + bytes;) {
                if (tickets.size() == MAX_SEGMENTS) {
                    throw new MillraceException(
                            "it is made of more than " + MAX_SEGMENTS + " physical segments: allocate larger ones");
                }
                Ticket ticket = export(driver, at);
                tickets.add(ticket);
                at += ticket.allocated() - ticket.offset();
            }
            complete = true;
            return List.copyOf(tickets);
        } finally {
            if (!complete) {
                tickets.forEach(Ticket::close);
            }
        }
    }

    /**
     * Maps memory that belongs to another process and lies in one physical segment.
     *
     * @param device number of the device that may access the mapping
     * @throws MillraceException if the memory cannot be mapped; the message states the reason
     */
    public static ForeignMemory open(CudaDriver driver, int device, Ticket ticket) {
        return open(driver, device, List.of(ticket));
    }

    /**
     * Maps memory that belongs to another process and consists of several physical segments. The segments are mapped at
     * consecutive addresses, as in the other process.
     *
     * @param device  number of the device that may access the mapping
     * @param tickets tickets of the other process, in the order of their creation
     * @throws MillraceException if the memory cannot be mapped; the message states the reason
     */
    public static ForeignMemory open(CudaDriver driver, int device, List<Ticket> tickets) {
        long[] bytes = tickets.stream().mapToLong(Ticket::allocated).toArray();
        long all = 0;
        for (long part : bytes) {
            if (part <= 0 || (all += part) < 0) {
                throw new MillraceException("the peer reported segments of " + Arrays.toString(bytes) + " bytes");
            }
        }
        int mapped = 0;
        boolean complete = false;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            driver.checkedCall(Function.RESERVE, out.address(), all, 0L, 0L, 0L);
            long base = out.get(ValueLayout.JAVA_LONG, 0);
            long at = base;
            try {
                for (Ticket ticket : tickets) {
                    map(driver, at, ticket, out);
                    mapped++;
                    allow(driver, at, ticket.allocated(), device, arena);
                    at += ticket.allocated();
                }
                complete = true;
                return new ForeignMemory(driver, base, all, bytes, tickets.getFirst().offset());
            } finally {
                if (!complete) {
                    unmap(driver, base, all, Arrays.copyOf(bytes, mapped));
                }
            }
        }
    }

    private static void map(CudaDriver driver, long at, Ticket ticket, MemorySegment out) {
        int descriptor = fetch(ticket);
        try {
            driver.checkedCall(Function.IMPORT, out.address(), (long) descriptor, FILE_DESCRIPTOR);
            long handle = out.get(ValueLayout.JAVA_LONG, 0);
            try {
                driver.checkedCall(Function.MAP, at, ticket.allocated(), 0L, handle, 0L);
            } finally {
                // The mapping keeps the memory alive without this handle.
                driver.call(Function.RELEASE, handle);
            }
        } finally {
            closeDescriptor(descriptor);
        }
    }

    private static void allow(CudaDriver driver, long at, long bytes, int device, Arena arena) {
        MemorySegment access = arena.allocate(ACCESS);
        access.setAtIndex(ValueLayout.JAVA_INT, 0, ON_DEVICE);
        access.setAtIndex(ValueLayout.JAVA_INT, 1, device);
        access.setAtIndex(ValueLayout.JAVA_INT, 2, READ_AND_WRITE);
        driver.checkedCall(Function.SET_ACCESS, at, bytes, access.address(), 1L);
    }

    private static void unmap(CudaDriver driver, long base, long reserved, long[] mapped) {
        long at = base;
        for (long part : mapped) {
            driver.call(Function.UNMAP, at, part);
            at += part;
        }
        driver.call(Function.FREE, base, reserved);
    }

    private static int fetch(Ticket ticket) {
        long process = syscall(PIDFD_OPEN, ticket.process(), 0, 0);
        if (process < 0) {
            throw new MillraceException(
                    "process " + ticket.process() + " is not visible to this process (pidfd_open): another container?");
        }
        try {
            long descriptor = syscall(PIDFD_GETFD, process, ticket.descriptor(), 0);
            if (descriptor < 0) {
                throw new MillraceException("no right to fetch a descriptor from process " + ticket.process()
                        + " (pidfd_getfd): this requires the same user and kernel.yama.ptrace_scope=0, or root");
            }
            return (int) descriptor;
        } finally {
            closeDescriptor((int) process);
        }
    }

    private static long syscall(long number, long first, long second, long third) {
        return SYSCALL.call(number, first, second, third);
    }

    private static void closeDescriptor(int descriptor) {
        CLOSE.call(descriptor);
    }

    /** {@return the device address of the memory in this process} */
    public long address() {
        return base + offset;
    }

    /** Unmaps the memory. No copy may access it afterwards. */
    @Override
    public void close() {
        unmap(driver, base, reserved, mapped);
    }
}
