package org.millrace.cli;

import java.util.Map;

/** What the options before and behind every command say. */
public interface GlobalOptions {

    /** The settings of the command line, by the names of the environment variables: a copy. */
    Map<String, String> settings();

    boolean stackTraces();
}
