package org.millrace.nccl;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToIntFunction;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CurrentDevice;
import org.millrace.foreign.CFunction;
import org.millrace.cuda.DeviceMemory;
import org.millrace.ffi.nccl.ncclUniqueId;
import org.millrace.ffi.nccl.nccl_h;
import org.millrace.config.Settings;
import org.millrace.library.LibraryDirectories;
import org.millrace.library.NativeLibrary;

/**
 * The loaded NCCL library, which creates unique ids, communicators and groups. A program needs only one such object.
 */
public final class NcclLibrary {

    private static final Logger LOG = LogManager.getLogger(NcclLibrary.class);

    private final NativeLibrary library;
    /**
     * Functions of the library, indexed by the ordinal of {@link NcclFunction}; null before the first call of a
     * function.
     */
    private final @Nullable CFunction[] plain = new CFunction[NcclFunction.ALL.size()];

    private NcclLibrary(NativeLibrary library) {
        this.library = library;
    }

    /**
     * Loads NCCL from the location in the settings, or by the search that {@link #load(String)} describes.
     *
     * @return the library; a driver or a GPU need not be present
     * @throws MillraceException if no usable libnccl was found
     */
    public static NcclLibrary load() {
        return load(null);
    }

    /**
     * Loads NCCL. If NCCL is absent, loads RCCL, AMD's library with the same functions. Communicators also need CUDA's
     * runtime, so a program can use only the functions of RCCL that need no GPU.
     *
     * @param path the value of {@code MILLRACE_NCCL_LIBRARY}: a file, its folder, or a name for the dynamic loader. If
     *             it is null or empty, these sources are tried in order: the libnccl that Millrace already uses in this
     *             process; the system property {@code millrace.nccl.library}; the environment variable; and the usual
     *             names and directories.
     * @return the library; a driver or a GPU need not be present
     * @throws MillraceException if no usable libnccl was found; the message states the searched places and the setting
     *                           that names the library
     */
    public static NcclLibrary load(@Nullable String path) {
        NativeLibrary.Search search = new NativeLibrary.Search("NCCL", Settings.NCCL_LIBRARY,
                List.of("libnccl.so.2", "libnccl.so", "librccl.so.1", "librccl.so"),
                LibraryDirectories.list(Path.of("/"), System::getenv, List.of("nvidia/nccl/lib")), NcclFunction.ALL,
                "Install it (pip install nvidia-nccl-cu13, or libnccl2 from NVIDIA's package repository)");
        return new NcclLibrary(NativeLibrary.load(search, path));
    }

    /**
     * Examines the NCCL installation of this machine, for {@code millrace doctor}.
     *
     * @param path the value of {@code MILLRACE_NCCL_LIBRARY}, or null; see {@link #load(String)}
     * @return the report. A missing or broken library is stated in the report and causes no exception
     */
    public static NativeLibrary.Report probe(@Nullable String path) {
        try {
            NcclLibrary nccl = load(path);
            try {
                return new NativeLibrary.Report("NCCL", nccl.library.path(), nccl.versionText(), null, false,
                        nccl.library.setAside());
            } catch (NcclException broken) {
                return new NativeLibrary.Report("NCCL", nccl.library.path(), null, broken.getMessage(), false,
                        nccl.library.setAside());
            }
        } catch (MillraceException unusable) {
            return NativeLibrary.Report.unusable("NCCL", unusable);
        }
    }

    /** {@return the loaded libnccl} */
    public NativeLibrary library() {
        return library;
    }

    /** {@return the version of the loaded NCCL: 10000 × major + 100 × minor + patch, for instance 22809 for 2.28.9} */
    public int version() {
        return intOf(NcclFunction.GET_VERSION, nccl_h::ncclGetVersion);
    }

    /** {@return the version of the loaded NCCL as text, for instance {@code "2.28.9"}} */
    public String versionText() {
        return versionText(version());
    }

    /** {@return a version number of NCCL as text, for instance {@code "2.28.9"}} */
    public static String versionText(int version) {
        // Before 2.9 NCCL multiplied the major version by 1000.
        int major = version < 10_000 ? 1_000 : 10_000;
        return version / major + "." + version % major / 100 + "." + version % 100;
    }

    /**
     * Creates an id for a new communicator. NCCL begins to listen for connections of the ranks.
     *
     * @throws NcclException if no network interface can be used
     */
    public UniqueId newUniqueId() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment id = ncclUniqueId.allocate(arena);
            check(NcclFunction.GET_UNIQUE_ID, nccl_h.ncclGetUniqueId(id));
            return UniqueId.read(id);
        }
    }

    /**
     * Joins a communicator. Outside a group, the method returns when all ranks have joined.
     *
     * @param id   id of the communicator, the same for all ranks
     * @param size number of ranks
     * @param rank number of this rank, 0 to {@code size - 1}
     */
    public NcclCommunicator join(CudaDevice device, UniqueId id, int size, int rank) {
        return join(NcclFunction.COMM_INIT_RANK, device, size, rank, NcclConfig.DEFAULT,
                (out, arena) -> nccl_h.ncclCommInitRank(out, size, id.write(arena), rank));
    }

    /**
     * Joins a communicator with the given options.
     *
     * @param id     id of the communicator, the same for all ranks
     * @param size   number of ranks
     * @param rank   number of this rank, 0 to {@code size - 1}
     * @param config options; if they make the communicator non-blocking, {@link NcclCommunicator#awaitReady} must
     *               precede its first use
     */
    public NcclCommunicator join(CudaDevice device, UniqueId id, int size, int rank, NcclConfig config) {
        return join(NcclFunction.COMM_INIT_RANK_CONFIG, device, size, rank, config, (out, arena) -> nccl_h
                .ncclCommInitRankConfig(out, size, id.write(arena), rank, config.write(arena, this)));
    }

    /**
     * Joins a communicator with very many ranks through several ids. NCCL distributes the ranks over the ids, so that
     * no single rank must accept all connections.
     *
     * @param ids  the communicator's ids, the same and in the same order for all ranks; at most one per rank
     * @param size number of ranks
     * @param rank number of this rank, 0 to {@code size - 1}
     */
    public NcclCommunicator join(CudaDevice device, List<UniqueId> ids, int size, int rank, NcclConfig config) {
        require(NcclFunction.COMM_INIT_RANK_SCALABLE);
        checkRank(size, rank);
        if (ids.isEmpty() || ids.size() > size) {
            throw new IllegalArgumentException(size + " ranks join through 1 to " + size + " ids, not " + ids.size());
        }
        return join(NcclFunction.COMM_INIT_RANK_SCALABLE, device, size, rank, config, (out, arena) -> {
            MemorySegment array = arena.allocate(ncclUniqueId.layout(), ids.size());
            for (int i = 0; i < ids.size(); i++) {
                MemorySegment.copy(ids.get(i).toBytes(), 0, array, ValueLayout.JAVA_BYTE, (long) i * UniqueId.BYTES,
                        UniqueId.BYTES);
            }
            return nccl_h.ncclCommInitRankScalable(out, size, rank, ids.size(), array, config.write(arena, this));
        });
    }

    /**
     * Joins a communicator as a new rank, while the existing ranks call {@link NcclCommunicator#grow}. Several ranks
     * can join at the same time. Requires NCCL 2.29.
     *
     * @param id   id that one of the existing ranks created with {@link NcclCommunicator#newUniqueId}
     * @param size number of ranks of the new communicator
     * @param rank number of this rank; at least the number of existing ranks, because they keep their numbers
     */
    public NcclCommunicator joinGrowing(CudaDevice device, UniqueId id, int size, int rank, NcclConfig config) {
        return join(NcclFunction.COMM_GROW, device, size, rank, config, (out, arena) -> nccl_h
                .ncclCommGrow(MemorySegment.NULL, size, id.write(arena), rank, out, config.write(arena, this)));
    }

    private interface Joins {
        int call(MemorySegment out, Arena arena);
    }

    private NcclCommunicator join(NcclFunction function, CudaDevice device, int size, int rank, NcclConfig config,
            Joins joins) {
        require(function);
        checkRank(size, rank);
        try (CurrentDevice _ = device.makeCurrent(); Arena arena = Arena.ofConfined()) {
            MemorySegment out = Arena.global().allocate(ValueLayout.ADDRESS);
            return NcclCommunicator.joined(this, device, out, size, rank, config, function, joins.call(out, arena));
        }
    }

    /** {@return NCCL's own settings with the values that NCCL has read; requires NCCL 2.30.4} */
    public NcclParameters parameters() {
        return new NcclParameters(this);
    }

    /**
     * Creates a communicator with all its ranks in this process, one rank for each device.
     *
     * @return the communicator object of each rank, in the order of the devices
     */
    public List<NcclCommunicator> joinAll(List<CudaDevice> devices) {
        if (devices.isEmpty()) {
            throw new IllegalArgumentException("a communicator has 1 rank or more, so it needs 1 device or more");
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = Arena.global().allocate(ValueLayout.ADDRESS, devices.size());
            MemorySegment list =
                    arena.allocateFrom(ValueLayout.JAVA_INT, devices.stream().mapToInt(CudaDevice::index).toArray());
            int code = nccl_h.ncclCommInitAll(out, devices.size(), list);
            check(NcclFunction.COMM_INIT_ALL, code);
            List<NcclCommunicator> ends = new ArrayList<>();
            for (int rank = 0; rank < devices.size(); rank++) {
                MemorySegment slot = out.asSlice(rank * ValueLayout.ADDRESS.byteSize(), ValueLayout.ADDRESS);
                ends.add(NcclCommunicator.joined(this, devices.get(rank), slot, devices.size(), rank,
                        NcclConfig.DEFAULT, NcclFunction.COMM_INIT_ALL, code));
            }
            return List.copyOf(ends);
        }
    }

    /** Opens a group. When the group is closed, NCCL issues all calls together that this thread made in the group. */
    public NcclGroup group() {
        return new NcclGroup(this);
    }

    /**
     * {@return new device memory that NCCL can register and use in place}
     *
     * @param bytes number of bytes; NCCL may round the number up
     */
    public DeviceMemory allocate(CudaDevice device, long bytes) {
        require(NcclFunction.MEM_ALLOC);
        if (bytes < 0) {
            throw new IllegalArgumentException("device memory of " + bytes + " bytes: the size must not be negative");
        }
        try (CurrentDevice _ = device.makeCurrent()) {
            MemorySegment address = addressOf(NcclFunction.MEM_ALLOC, out -> nccl_h.ncclMemAlloc(out, bytes));
            return new DeviceMemory(device, address, bytes,
                    start -> checkRelease(NcclFunction.MEM_FREE, nccl_h.ncclMemFree(start)));
        }
    }

    /**
     * Returns a function that takes plain numbers, including addresses, as arguments. Throws if the loaded NCCL lacks
     * the function.
     */
    CFunction plain(NcclFunction function) {
        CFunction known = plain[function.ordinal()];
        if (known == null) {
            require(function);
            known = CFunction.at(library.find(function.symbol()).orElseThrow());
            // A CFunction has only final fields. A thread that reads the array without ordering therefore sees either
            // null or a complete CFunction.
            plain[function.ordinal()] = known;
        }
        return known;
    }

    /** Throws if the loaded NCCL does not contain a function. */
    void require(NcclFunction function) {
        if (!library.has(function)) {
            throw library.lacks(function, versionText());
        }
    }

    /** Throws if the loaded NCCL is too old for a feature. Used for features that add no function to the library. */
    void requireVersion(String what, int since) {
        int version = version();
        if (version < since) {
            throw new MillraceException(what + " is not in the loaded NCCL " + versionText(version) + " ("
                    + library.path() + "): NCCL " + versionText(since) + " and later have it");
        }
    }

    /** Throws if a function has failed. Does not throw if the function returned "in progress". */
    void check(NcclFunction function, int code) {
        if (code != nccl_h.ncclSuccess() && code != nccl_h.ncclInProgress()) {
            throw failure(function, "", MemorySegment.NULL, code);
        }
    }

    /**
     * Logs a warning if a function that releases an object has failed. An exception would not help, because the caller
     * has no other way to release the object.
     */
    void checkRelease(NcclFunction function, int code) {
        if (code != nccl_h.ncclSuccess() && code != nccl_h.ncclInProgress()) {
            LOG.warn("{}", failure(function, "", MemorySegment.NULL, code).getMessage());
        }
    }

    NcclException failure(NcclFunction function, String where, MemorySegment communicator, int code) {
        String text = NativeLibrary.text(nccl_h.ncclGetErrorString(code));
        String last =
                library.has(NcclFunction.GET_LAST_ERROR) ? NativeLibrary.text(nccl_h.ncclGetLastError(communicator))
                        : null;
        return new NcclException(function.symbol(), where, code, text, last);
    }

    /** Calls a function that writes an int, and returns the int. Throws if the function fails. */
    int intOf(NcclFunction function, ToIntFunction<MemorySegment> call) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
            check(function, call.applyAsInt(out));
            return out.get(ValueLayout.JAVA_INT, 0);
        }
    }

    /** Calls a function that writes a pointer, and returns the pointer. Throws if the function fails. */
    MemorySegment addressOf(NcclFunction function, ToIntFunction<MemorySegment> call) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(ValueLayout.ADDRESS);
            check(function, call.applyAsInt(out));
            return out.get(ValueLayout.ADDRESS, 0);
        }
    }

    private static void checkRank(int size, int rank) {
        if (size < 1 || rank < 0 || rank >= size) {
            throw new IllegalArgumentException("rank " + rank + " of " + size + ": ranks are 0 to size - 1");
        }
    }
}
