package org.millrace.net.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.plugin.ncclNetCommConfig_v10_t;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.library.DynamicLoader;
import org.millrace.net.ConnectionException;
import org.millrace.net.plugin.NetTable.NetFunction;

/** A library with a network table. It is never unloaded, because the plugin may have created threads. */
final class PluginLibrary {

    /**
     * Range of the table versions that a message can name. If a library has no supported table, the message names the
     * library's tables in this range.
     */
    private static final int OLDEST_NAMED = 2;
    private static final int NEWEST_NAMED = 24;

    private static final Map<Path, PluginLibrary> LOADED = new HashMap<>();

    private final Path path;
    private final NetTable table;
    private final String name;
    private final long configuration;
    /**
     * The single session of a table whose version has no contexts. Such a table is initialized only once. The session
     * is null before the initialization, and always null if the version has contexts.
     */
    private @Nullable Session only;

    /**
     * Result of the initialization of a plugin.
     *
     * @param context address of the plugin's context; 0 if the table's version has no contexts
     * @param devices usable devices; at least one
     */
    public record Session(PluginLibrary library, long context, List<PluginDevice> devices) {

        public NetTable table() {
            return library.table;
        }

        public int version() {
            return library.table.version().number();
        }

        /** Returns the address of a {@code ncclNetCommConfig_t}. */
        public long configuration() {
            return library.configuration;
        }

        public String plugin() {
            return library.name;
        }

        /** Describes a failed call. The description includes the warning that the plugin has logged, if any. */
        public String failed(NetFunction function, int result) {
            return library.failed(function, result);
        }

        /** Finalizes the plugin's context. No later call may use the context. */
        public void close(CallWatch watch) {
            if (context != 0 && library.table.has(NetFunction.FINALIZE)) {
                library.table.close(watch, NetFunction.FINALIZE, context);
            }
        }
    }

    private PluginLibrary(Path path, NetTable table, String name) {
        this.path = path;
        this.table = table;
        this.name = name;
        MemorySegment config = Arena.global().allocate(ncclNetCommConfig_v10_t.layout());
        ncclNetCommConfig_v10_t.trafficClass(config, NetTable.NO_TRAFFIC_CLASS);
        configuration = config.address();
    }

    /** Returns the library at a path. Loads it only once. Throws an exception if it has no supported table. */
    public static PluginLibrary load(Path path) {
        synchronized (LOADED) {
            PluginLibrary known = LOADED.get(path);
            if (known != null) {
                return known;
            }
            PluginLibrary loaded = open(path);
            LOADED.put(path, loaded);
            return loaded;
        }
    }

    private static PluginLibrary open(Path path) {
        String problem = "the network plugin " + path + " cannot be used: ";
        // NCCL_NET_PLUGIN may contain a name without a directory. The dynamic loader then searches for the library.
        boolean searched = path.getParent() == null;
        if (!searched && !Files.exists(path)) {
            throw new ConnectionException(problem + "there is no such file");
        }
        DynamicLoader.Opened opened = DynamicLoader.open(searched ? path.toString() : path.toAbsolutePath().toString());
        MemorySegment handle = opened.handle();
        if (handle == null) {
            throw new ConnectionException(problem + opened.error());
        }
        for (TableVersion version : TableVersion.values()) {
            MemorySegment symbol = DynamicLoader.find(handle, version.symbol());
            if (symbol != null) {
                try {
                    NetTable table = new NetTable(version, symbol);
                    String name =
                            NetTable.text(NetTable.unscoped(symbol.address(), Long.BYTES).get(ValueLayout.ADDRESS, 0));
                    return new PluginLibrary(path, table, name == null ? "without a name" : name);
                } catch (ConnectionException e) {
                    throw new ConnectionException(problem + e.getMessage(), e);
                }
            }
        }
        throw new ConnectionException(problem + "it has none of NCCL's network tables "
                + TableVersion.symbol(TableVersion.V8.number()) + " to v" + TableVersion.V12.number() + others(handle));
    }

    private static String others(MemorySegment handle) {
        List<String> others = new ArrayList<>();
        for (int number = OLDEST_NAMED; number <= NEWEST_NAMED; number++) {
            if (DynamicLoader.find(handle, TableVersion.symbol(number)) != null) {
                others.add("v" + number);
            }
        }
        return others.isEmpty() ? "; it is no network plugin of NCCL's"
                : ", only " + String.join(", ", others) + ": it is of another release of NCCL's";
    }

    /** Initializes the plugin for a network. Throws an exception if this fails, or if no device is usable. */
    public synchronized Session start(CallWatch watch) {
        if (only != null) {
            return only;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment context = arena.allocate(ValueLayout.JAVA_LONG);
            int result = table.init(watch, context.address(), new SecureRandom().nextLong(), configuration,
                    PluginLog.logger(), PluginLog.profiler());
            check(NetFunction.INIT, result);
            Session session = new Session(this, context.get(ValueLayout.JAVA_LONG, 0), devices(watch, arena));
            if (!table.version().hasContext()) {
                only = session;
            }
            return session;
        }
    }

    private List<PluginDevice> devices(CallWatch watch, Arena arena) {
        MemorySegment count = arena.allocate(ValueLayout.JAVA_INT);
        int result = table.devices(watch, count.address());
        check(NetFunction.DEVICES, result);
        List<PluginDevice> usable = new ArrayList<>();
        List<String> left = new ArrayList<>();
        for (int device = 0; device < count.get(ValueLayout.JAVA_INT, 0); device++) {
            MemorySegment properties = arena.allocate(table.version().properties());
            result = table.getProperties(watch, device, properties.address());
            check(NetFunction.GET_PROPERTIES, result);
            PluginDevice read = PluginDevice.read(device, table.version(), properties);
            if (read.needsKernels()) {
                left.add(read + " needs kernels that put its data together (network device type " + read.deviceType()
                        + ")");
            } else if (!read.supports(plugin_h.NCCL_PTR_HOST())) {
                left.add(read + " does not support host memory");
            } else {
                usable.add(read);
            }
        }
        if (usable.isEmpty()) {
            throw new ConnectionException(this + " has no device that can be used here"
                    + (left.isEmpty() ? "" : ": " + String.join(", ", left)) + said());
        }
        return List.copyOf(usable);
    }

    private void check(NetFunction function, int result) {
        if (result != NetTable.SUCCESS) {
            throw new ConnectionException(this + ": " + failed(function, result));
        }
    }

    private String failed(NetFunction function, int result) {
        return "the plugin's " + function + " failed: " + NetTable.describe(result) + said();
    }

    /**
     * Returns the newest warning that is not logged yet, for the message of a failure. The warning may come from
     * another plugin of this process.
     */
    private String said() {
        String warning = PluginLog.take();
        return warning == null ? "" : "; its message: " + warning;
    }

    public String name() {
        return name;
    }

    @Override
    public String toString() {
        return "the network plugin " + name + " (" + path + ", " + table.version().symbol() + ")";
    }
}
