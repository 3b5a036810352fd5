package org.millrace.bench.report;

import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;

/** Reasons for the results of lines, found in the x86-64 code of HotSpot's C2 and gcc. */
public final class Explanations {

    private record Explanation(Pattern keys, String text) {
    }

    private static final List<Explanation> ALL = List.of(explain("crossings:accesses/descriptors\\..*",
            "The descriptor and its address are in fields, which are read again after every access that orders; the "
                    + "address is compared with the end "
                    + "of memory and tested for its alignment: two loads, a compare and a test around the mov that "
                    + "C has alone. A slot's number is "
                    + "checked and multiplied besides. (Through a segment in the field it was a dozen loads and "
                    + "compares, and three times as long.)"),
            explain("crossings:accesses/(local|instance)\\..*",
                    "A segment that is no constant is checked at every access: C2's code compares its class, for a "
                            + "store its read-only flag, its length with "
                            + "the offset, the address's alignment, the session's owner and the session's state, "
                            + "about a dozen loads and compares around one "
                            + "mov that is the same as C's. After an access that orders, nothing that was loaded "
                            + "before it may be reused, so that none of this "
                            + "leaves the loop; what is left of it in a real method is what the rest does not hide. "
                            + "A segment of the global arena in a static " + "final field keeps none of it."),
            explain("crossings:accesses/buffer\\..*",
                    "A direct buffer keeps its address, its limit and its session in fields that are read again "
                            + "after every access that orders."),
            explain("crossings:accesses/atomics\\..*",
                    "The array is found through a field and its length is compared at every access."),
            explain("crossings:accesses/chronicle\\..*",
                    "The store's address is a field that is read again after every access that orders, and "
                            + "Chronicle checks that the store is not released."),
            explain("rings:.*constant",
                    "The waiting loops are the same: load, compare, branch, pause (C2 unrolls four of them). Where "
                            + "the two cores share execution units, as the "
                            + "small round trip here says, what one thread does while it waits slows the other, and "
                            + "a few instructions more around the loop " + "are seen."),
            explain("rings:.*work", "As under Crossings: the items are in segments that are no constants."),
            explain("rings:.*ll128.*",
                    "The line's 120 bytes are moved by MemorySegment.copy, which checks the data's segment and "
                            + "calls a stub, some 5 ns for each line and side; "
                            + "gcc makes four vector moves of a memcpy whose length it knows. The flag is the same "
                            + "release store, and the line that travels "
                            + "between the cores takes the same time for both."),
            explain("rings:.*\\.ll\\..*",
                    "Where the 60 lines of a step are is checked once, and what is left of a half's store is the "
                            + "store, as in C. The taker's look at the whole "
                            + "slot is vectorized in both; it takes the data out through segments, whose checks are "
                            + "made once for a step."),
            explain("rings:.*",
                    "The proxies' descriptors are objects, one for each connection: their addresses are read again "
                            + "for each access of head, tail and size (see "
                            + "Crossings), and the payload is copied between segments that are no constants. With "
                            + "small payloads nothing else is there to hide "
                            + "that; the line that travels between the two cores takes the same time for both."),
            explain("proxy:.*",
                    "C does the bare work: it looks at one word of each connection, or copies a slot. Java's pass "
                            + "asks each proxy for its state, its operation "
                            + "and its credits, and looks at the network's end."),
            explain("fences:.*written\\..*",
                    "The other core writes the line as fast as it can: both sides wait for the line, and which of "
                            + "two loops of unlike length finds it in "
                            + "its cache more often is chance (the interval says so)."),
            explain("frames:.*",
                    "A frame is more than its bytes here: header with sequence number, checks of what the peer "
                            + "wrote, bookkeeping of frames in flight."),
            explain("crossings:accesses/array\\..*|crossings:accesses/static\\..*",
                    "The same instruction; C2 and gcc differ in how the loop around it is unrolled."),
            explain("(fences|gpu):.*data_full_fence_poll|(fences|gpu):.*store_fence_load",
                    "HotSpot's full fence is 'lock addl $0, -64(%rsp)', gcc's 'lock orq $0, (%rsp)': the same "
                            + "operation on different words of the stack."),
            explain("(fences|gpu):.*(set_plain|data_.*|_fence)",
                    "The same stores; C2 unrolls the loop and computes the addresses of several turns first, gcc "
                            + "does not unroll."));

    private Explanations() {}

    /**
     * Returns reasons for lines.
     *
     * @param lines lines that miss the goal
     * @return each reason once
     */
    public static List<String> of(List<Line> lines) {
        return lines.stream().map(Explanations::of).filter(Objects::nonNull).distinct().toList();
    }

    /**
     * The reason for a line.
     *
     * @param line a line that misses the goal
     * @return the reason, or null if none is known
     */
    public static String of(Line line) {
        return ALL.stream()
                .filter(each -> each.keys.matcher(line.key()).matches())
                .map(Explanation::text)
                .findFirst()
                .orElse(null);
    }

    private static Explanation explain(String keys, String text) {
        return new Explanation(Pattern.compile(keys), text);
    }
}
