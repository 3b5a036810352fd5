/**
 * Starts ranks as threads or as processes, hears what they report until the last one has ended, and lets none outlive
 * the run. It does not know what ranks do.
 */
@NullMarked
package org.millrace.cli.launch;

import org.jspecify.annotations.NullMarked;
