package org.millrace.cli.matrix;

import org.millrace.cli.perf.RankEvent;

/** What became of a cell: all ranks' words together. */
final class CellResult {

    private final Group group;
    private final Cell cell;
    private int heard;
    private long wrong;
    private boolean ran = true;
    private String refusal = "";
    private String failure = "";

    CellResult(Group group, Cell cell) {
        this.group = group;
        this.cell = cell;
    }

    Group group() {
        return group;
    }

    Cell cell() {
        return cell;
    }

    void add(RankEvent.Checked event) {
        heard++;
        wrong += event.wrong();
        ran &= event.ran() > 0;
        refusal = refusal.isEmpty() ? event.refusal() : refusal;
        failure = failure.isEmpty() ? event.failure() : failure;
    }

    /** It never ran, and this is why. */
    void refuse(String reason) {
        heard = group.ranks();
        ran = false;
        refusal = reason;
    }

    /** It was not finished. */
    void fail(String why) {
        heard = group.ranks();
        failure = failure.isEmpty() ? why : failure;
    }

    boolean isComplete() {
        return heard >= group.ranks();
    }

    /** It ran on all ranks as was asked. */
    boolean hasRun() {
        return failure.isEmpty() && ran;
    }

    boolean isImpossible() {
        return failure.isEmpty() && !ran;
    }

    /** Wrong elements of a cell that ran. In one that did not, they are from what ran instead, which a rank that only receives cannot tell. */
    long wrong() {
        return isImpossible() ? 0 : wrong;
    }

    /** Why it is impossible; empty if it is not. */
    String reason() {
        return isImpossible() ? refusal : "";
    }

    /** What went wrong; empty if nothing did. */
    String failure() {
        return failure;
    }
}
