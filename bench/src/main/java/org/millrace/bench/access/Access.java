package org.millrace.bench.access;

import java.util.Locale;
import org.millrace.bench.measure.Loop;

/** The accesses that are measured. */
public enum Access {
    /** Get plain. */
    GET_PLAIN("Reads", "get plain", count -> LineAccess.getPlain(count)),
    /** Get opaque. */
    GET_OPAQUE("Reads", "get opaque", count -> LineAccess.getOpaque(count)),
    /** Get acquire. */
    GET_ACQUIRE("Reads", "get acquire", count -> LineAccess.getAcquire(count)),
    /** Get volatile. */
    GET_VOLATILE("Reads", "get volatile", count -> LineAccess.getVolatile(count)),
    /** Set plain. */
    SET_PLAIN("Writes", "set plain", count -> LineAccess.setPlain(count)),
    /** Set opaque. */
    SET_OPAQUE("Writes", "set opaque", count -> LineAccess.setOpaque(count)),
    /** Set release. */
    SET_RELEASE("Writes", "set release", count -> LineAccess.setRelease(count)),
    /** Set volatile. */
    SET_VOLATILE("Writes", "set volatile", count -> LineAccess.setVolatile(count)),
    /** GetAndAdd. */
    GET_AND_ADD("Read-modify-writes", "getAndAdd", count -> LineAccess.getAndAdd(count)),
    /** Get, compareAndSet that succeeds. */
    COMPARE_AND_SET("Read-modify-writes", "get, compareAndSet that succeeds", count -> LineAccess.compareAndSet(count)),
    /** CompareAndSet that fails. */
    FAILED_COMPARE_AND_SET("Read-modify-writes", "compareAndSet that fails",
            count -> LineAccess.failedCompareAndSet(count)),
    /** Set opaque, loadLoadFence. */
    LOAD_LOAD_FENCE("Fences", "set opaque, loadLoadFence", count -> LineAccess.loadLoadFence(count)),
    /** Set opaque, acquireFence. */
    ACQUIRE_FENCE("Fences", "set opaque, acquireFence", count -> LineAccess.acquireFence(count)),
    /** Set opaque, storeStoreFence. */
    STORE_STORE_FENCE("Fences", "set opaque, storeStoreFence", count -> LineAccess.storeStoreFence(count)),
    /** Set opaque, releaseFence. */
    RELEASE_FENCE("Fences", "set opaque, releaseFence", count -> LineAccess.releaseFence(count)),
    /** Set opaque, fullFence. */
    FULL_FENCE("Fences", "set opaque, fullFence", count -> LineAccess.fullFence(count)),
    /** Data, then set release. */
    DATA_RELEASE("Protocols", "data, then set release", count -> LineAccess.dataRelease(count)),
    /** Data, storeStoreFence, set opaque. */
    DATA_STORE_FENCE("Protocols", "data, storeStoreFence, set opaque", count -> LineAccess.dataStoreFence(count)),
    /** Data, fullFence, set opaque. */
    DATA_FULL_FENCE("Protocols", "data, fullFence, set opaque", count -> LineAccess.dataFullFence(count)),
    /** Data, then set volatile. */
    DATA_VOLATILE("Protocols", "data, then set volatile", count -> LineAccess.dataVolatile(count)),
    /** Set opaque, fullFence, get acquire of another word. */
    STORE_FENCE_LOAD("Protocols", "set opaque, fullFence, get acquire of another word",
            count -> LineAccess.storeFenceLoad(count)),
    /** Set opaque, fullFence, get opaque of another word. */
    STORE_FENCE_OPAQUE_LOAD("Protocols", "set opaque, fullFence, get opaque of another word",
            count -> LineAccess.storeFenceOpaqueLoad(count)),
    /** Set volatile, get volatile of another word. */
    VOLATILE_STORE_LOAD("Protocols", "set volatile, get volatile of another word",
            count -> LineAccess.volatileStoreLoad(count)),
    /** Data, set release, get acquire. */
    DATA_RELEASE_POLL("Post and poll", "data, set release, get acquire", count -> LineAccess.dataReleasePoll(count)),
    /** Data, fullFence, set opaque, get acquire. */
    DATA_FULL_FENCE_POLL("Post and poll", "data, fullFence, set opaque, get acquire",
            count -> LineAccess.dataFullFencePoll(count)),
    /** Data, set volatile, get acquire. */
    DATA_VOLATILE_POLL("Post and poll", "data, set volatile, get acquire", count -> LineAccess.dataVolatilePoll(count));

    private final String group;
    private final String title;
    private final Loop loop;

    /*
     * The arguments are lambdas, not method references. A method reference initializes its class when it is created,
     * and that class needs the memory, which is chosen later.
     */
    Access(String group, String title, Loop loop) {
        this.group = group;
        this.title = title;
        this.loop = loop;
    }

    /**
     * Returns the kind of access.
     *
     * @return its heading in the report
     */
    public String group() {
        return group;
    }

    /**
     * Returns the description of the access.
     *
     * @return words for the report
     */
    public String title() {
        return title;
    }

    /** {@return the loop of this access, to the memory that {@link LineMemory} has} */
    public Loop loop() {
        return loop;
    }

    /**
     * Returns whether the access is a locked instruction on the word itself. gcc's volatile stores are such accesses
     * (xchg). HotSpot's volatile store is not: it is a plain store, and a locked instruction on the stack.
     *
     * @param inC whether C makes the access
     * @return whether it locks the bus for all cores if the memory is uncached
     */
    public boolean isLocked(boolean inC) {
        return switch (this) {
            case GET_AND_ADD, COMPARE_AND_SET, FAILED_COMPARE_AND_SET -> true;
            case SET_VOLATILE, DATA_VOLATILE, VOLATILE_STORE_LOAD, DATA_VOLATILE_POLL -> inC;
            default -> false;
        };
    }

    /**
     * Returns the same access in C.
     *
     * @return the loop's symbol
     */
    public String symbol() {
        return "access_" + name().toLowerCase(Locale.ROOT);
    }
}
