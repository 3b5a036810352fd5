package org.millrace.trace;

import java.io.IOException;

/** A file is no trace, or one that this release cannot read. The message says which file, and what it has. */
final class TraceFormatException extends IOException {

    private static final long serialVersionUID = 1L;

    TraceFormatException(String message) {
        super(message);
    }
}
