package org.millrace.engine.connect;

import org.jspecify.annotations.Nullable;
import org.millrace.net.MemoryRegion;

/**
 * The user's memory that an operation uses in place, as the networks on its ways know it. Null where no elements arrive
 * or leave, or where they go through slots.
 */
public record UserRegions(@Nullable MemoryRegion received, @Nullable MemoryRegion sent) {

    /** Through slots. */
    public static final UserRegions NONE = new UserRegions(null, null);
}
