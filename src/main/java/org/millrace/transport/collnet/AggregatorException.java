package org.millrace.transport.collnet;

import org.millrace.MillraceException;

/** What ranks give to an aggregator does not fit together. */
public final class AggregatorException extends MillraceException {

    private static final long serialVersionUID = 1L;

    AggregatorException(String message) {
        super(message);
    }
}
