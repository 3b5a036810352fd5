package org.millrace.engine.connect;

import org.jspecify.annotations.Nullable;
import org.millrace.net.MemoryRegion;

/**
 * The user's memory that an operation uses in place, as the networks on its ways know it.
 *
 * @param received where elements arrive; null if nothing does, or if they go through slots
 * @param sent     where they are sent from; null likewise
 */
public record UserRegions(@Nullable MemoryRegion received, @Nullable MemoryRegion sent) {

    /** Through slots. */
    public static final UserRegions NONE = new UserRegions(null, null);
}
