package org.millrace.net.ucx;

import org.millrace.net.ConnectionException;

/** UCX cannot be used here: another network may serve. */
public class UcxUnavailableException extends ConnectionException {

    private static final long serialVersionUID = 1L;

    private final String problem;
    private final String remedy;
    private final boolean missing;

    UcxUnavailableException(String problem, String remedy) {
        this(problem, remedy, false);
    }

    UcxUnavailableException(String problem, String remedy, boolean missing) {
        super(problem + ": " + remedy);
        this.problem = problem;
        this.remedy = remedy;
        this.missing = missing;
    }

    /** {@return what is the matter, and where} */
    public String problem() {
        return problem;
    }

    /** {@return what to do} */
    public String remedy() {
        return remedy;
    }

    /** {@return whether there is no UCX at all} */
    public boolean isMissing() {
        return missing;
    }
}
