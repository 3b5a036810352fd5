package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import org.millrace.MillraceException;

/**
 * Device memory that another process of this host made, mapped here, so that one copy moves bytes from GPU to GPU. Only
 * memory made by {@code cuMemCreate} with a file descriptor for a handle can be shared so, as {@code ncclMemAlloc}'s
 * is.
 *
 * <p>
 * The other process keeps the descriptor open, and this one fetches a copy of it ({@code pidfd_getfd}, Linux 5.6), for
 * which it needs the right to trace that process: the same user, and Yama's {@code ptrace_scope} 0, or root.
 */
public final class ForeignMemory implements AutoCloseable {

    private static final int FILE_DESCRIPTOR = 1; // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    private static final int ON_DEVICE = 1; // CU_MEM_LOCATION_TYPE_DEVICE
    private static final int READ_AND_WRITE = 3; // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    private static final long PIDFD_OPEN = 434;
    private static final long PIDFD_GETFD = 438;
    /** {@code CUmemAccessDesc}. */
    private static final StructLayout ACCESS =
            MemoryLayout.structLayout(ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT);
    private static final MethodHandle SYSCALL = bind("syscall", 4);
    private static final MethodHandle CLOSE = bind("close", 1);

    private final CudaDriver driver;
    private final long base;
    private final long reserved;
    private final long offset;

    private ForeignMemory(CudaDriver driver, long base, long reserved, long offset) {
        this.driver = driver;
        this.base = base;
        this.reserved = reserved;
        this.offset = offset;
    }

    /**
     * What a process tells others of memory that they may map.
     *
     * @param process    its number
     * @param descriptor stays open there until nobody will map the memory any more
     * @param allocated  bytes of the whole allocation
     * @param offset     of the memory in it
     */
    public record Ticket(long process, int descriptor, long allocated, long offset) implements AutoCloseable {
        /** Closes the descriptor, in the process that made the ticket. */
        @Override
        public void close() {
            closeDescriptor(descriptor);
        }
    }

    /**
     * {@return a ticket for memory of this process}
     *
     * @param driver  the driver's functions
     * @param address of the memory
     * @throws MillraceException if memory of its kind cannot be shared
     */
    public static Ticket export(CudaDriver driver, long address) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG, 3);
            driver.checkedCall(CudaDriver.Function.GET_ADDRESS_RANGE, out.address(), out.address() + Long.BYTES,
                    address);
            long base = out.getAtIndex(ValueLayout.JAVA_LONG, 0);
            long bytes = out.getAtIndex(ValueLayout.JAVA_LONG, 1);
            driver.checkedCall(CudaDriver.Function.RETAIN, out.address(), base);
            long handle = out.getAtIndex(ValueLayout.JAVA_LONG, 0);
            try {
                driver.checkedCall(CudaDriver.Function.EXPORT, out.address(), handle, FILE_DESCRIPTOR, 0L);
            } finally {
                driver.call(CudaDriver.Function.RELEASE, handle);
            }
            return new Ticket(ProcessHandle.current().pid(), out.get(ValueLayout.JAVA_INT, 0), bytes, address - base);
        }
    }

    /**
     * Maps another process's memory.
     *
     * @param driver the driver's functions
     * @param device the device that will use it
     * @param ticket what the other process made
     * @return the memory; closing it unmaps it
     * @throws MillraceException if it cannot be mapped; the message says why
     */
    public static ForeignMemory open(CudaDriver driver, CudaDevice device, Ticket ticket) {
        return open(driver, device.index(), ticket);
    }

    /**
     * Maps another process's memory, as the other method does.
     *
     * @param driver the driver's functions
     * @param device number of the device that will use it
     * @param ticket what the other process made
     * @return the memory; closing it unmaps it
     * @throws MillraceException if it cannot be mapped; the message says why
     */
    public static ForeignMemory open(CudaDriver driver, int device, Ticket ticket) {
        int descriptor = fetch(ticket);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
            driver.checkedCall(CudaDriver.Function.IMPORT, out.address(), (long) descriptor, FILE_DESCRIPTOR);
            long handle = out.get(ValueLayout.JAVA_LONG, 0);
            try {
                return map(driver, device, handle, ticket, arena, out);
            } finally {
                driver.call(CudaDriver.Function.RELEASE, handle); // the mapping keeps the memory
            }
        } finally {
            closeDescriptor(descriptor);
        }
    }

    private static ForeignMemory map(CudaDriver driver, int device, long handle, Ticket ticket, Arena arena,
            MemorySegment out) {
        long bytes = ticket.allocated();
        driver.checkedCall(CudaDriver.Function.RESERVE, out.address(), bytes, 0L, 0L, 0L);
        long base = out.get(ValueLayout.JAVA_LONG, 0);
        boolean mapped = false;
        boolean complete = false;
        try {
            driver.checkedCall(CudaDriver.Function.MAP, base, bytes, 0L, handle, 0L);
            mapped = true;
            MemorySegment access = arena.allocate(ACCESS);
            access.setAtIndex(ValueLayout.JAVA_INT, 0, ON_DEVICE);
            access.setAtIndex(ValueLayout.JAVA_INT, 1, device);
            access.setAtIndex(ValueLayout.JAVA_INT, 2, READ_AND_WRITE);
            driver.checkedCall(CudaDriver.Function.SET_ACCESS, base, bytes, access.address(), 1L);
            complete = true;
            return new ForeignMemory(driver, base, bytes, ticket.offset());
        } finally {
            if (!complete) {
                if (mapped) {
                    driver.call(CudaDriver.Function.UNMAP, base, bytes);
                }
                driver.call(CudaDriver.Function.FREE, base, bytes);
            }
        }
    }

    private static int fetch(Ticket ticket) {
        long process = syscall(PIDFD_OPEN, ticket.process(), 0, 0);
        if (process < 0) {
            throw new MillraceException(
                    "process " + ticket.process() + " is not to be seen from here (pidfd_open): another container?");
        }
        try {
            long descriptor = syscall(PIDFD_GETFD, process, ticket.descriptor(), 0);
            if (descriptor < 0) {
                throw new MillraceException("no right to fetch a descriptor from process " + ticket.process()
                        + " (pidfd_getfd): it must be the same user's, and kernel.yama.ptrace_scope 0, or root's");
            }
            return (int) descriptor;
        } finally {
            closeDescriptor((int) process);
        }
    }

    private static long syscall(long number, long first, long second, long third) {
        try {
            return (long) SYSCALL.invokeExact(number, first, second, third);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static void closeDescriptor(int descriptor) {
        try {
            long ignored = (long) CLOSE.invokeExact((long) descriptor);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    @SuppressWarnings("restricted") // the C library's
    private static MethodHandle bind(String name, int arguments) {
        MemoryLayout[] longs = new MemoryLayout[arguments];
        java.util.Arrays.fill(longs, ValueLayout.JAVA_LONG);
        Linker linker = Linker.nativeLinker();
        MemorySegment address = linker.defaultLookup()
                .find(name)
                .orElseThrow(() -> new UnsatisfiedLinkError("the C library has no " + name));
        return linker.downcallHandle(address, FunctionDescriptor.of(ValueLayout.JAVA_LONG, longs));
    }

    /** {@return the device address at which the memory is mapped here} */
    public long address() {
        return base + offset;
    }

    /** Unmaps the memory; nothing may be copied there any more. */
    @Override
    public void close() {
        driver.call(CudaDriver.Function.UNMAP, base, reserved);
        driver.call(CudaDriver.Function.FREE, base, reserved);
    }
}
