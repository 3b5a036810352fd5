package org.millrace.plugin.host;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Table of handles that NCCL holds as pointers. A handle is a number that the table looks up, so a stale or foreign
 * handle causes an error and not a crash.
 *
 * <pre>
 *  63 62                    32 31                 12 11            0
 * +--+------------------------+---------------------+---------------+
 * | 0| generation, 1 or more  | index in the table  | part, 0 |
 * +--+------------------------+---------------------+---------------+
 * </pre>
 *
 * <p>
 * Handles of this table have the part 0. Other parts identify a request or a memory region of the object, see
 * {@code ConnectionHandle}. A lookup takes no lock. Objects are added and removed only when NCCL opens or closes them,
 * for instance with a connection.
 */
public final class HandleTable {

    public static final int PART_BITS = 12;
    public static final long PART_MASK = (1L << PART_BITS) - 1;
    private static final int PLACE_BITS = 20;

    private record Entry(long handle, Object object) {
    }

    /** Current entries. Each change replaces the whole array, so that readers see a consistent table. */
    private volatile @Nullable Entry[] entries = new Entry[0];
    private int generation;

    /** Adds an object. Returns its handle, which is never 0. */
    public synchronized long add(Object object) {
        @Nullable
        Entry[] now = entries;
        int place = 0;
        while (place < now.length && now[place] != null) {
            place++;
        }
        if (place == 1 << PLACE_BITS) {
            throw new IllegalStateException(
                    "NCCL holds " + place + " objects of this plugin, and there is no number for another");
        }
        @Nullable
        Entry[] next = Arrays.copyOf(now, Math.max(now.length, place + 1));
        generation = generation == Integer.MAX_VALUE ? 1 : generation + 1;
        long handle = (long) generation << Integer.SIZE | (long) place << PART_BITS;
        next[place] = new Entry(handle, object);
        entries = next;
        return handle;
    }

    /**
     * @param handle the object's handle, with or without a part
     * @throws IllegalArgumentException if the handle is unknown, or its object has another type
     */
    public <T> T get(long handle, Class<T> type) {
        long whole = handle & ~PART_MASK;
        @Nullable
        Entry[] now = entries;
        int place = (int) (whole >>> PART_BITS) & (1 << PLACE_BITS) - 1;
        Entry entry = place < now.length ? now[place] : null;
        if (entry == null || entry.handle != whole) {
            throw new IllegalArgumentException(
                    "0x" + Long.toHexString(handle) + " is no handle of this plugin, or was closed");
        }
        if (!type.isInstance(entry.object)) {
            throw new IllegalArgumentException("0x" + Long.toHexString(handle) + " is a "
                    + entry.object.getClass().getSimpleName() + ", not a " + type.getSimpleName());
        }
        return type.cast(entry.object);
    }

    public boolean hasAny(Class<?> type) {
        return Arrays.stream(entries).anyMatch(entry -> entry != null && type.isInstance(entry.object));
    }

    /** Removes an object. Afterwards its handle is stale. Throws the same exceptions as {@link #get}. */
    public synchronized <T> T remove(long handle, Class<T> type) {
        T object = get(handle, type);
        @Nullable
        Entry[] next = entries.clone();
        next[(int) (handle >>> PART_BITS) & (1 << PLACE_BITS) - 1] = null;
        entries = next;
        return object;
    }
}
