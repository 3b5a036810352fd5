/**
 * {@code millrace run}: starts a command as ranks, on this host or over ssh, with the variables by which they find each
 * other; passes on what they write and the signals that come; ends all when one fails.
 */
@NullMarked
package org.millrace.cli.run;

import org.jspecify.annotations.NullMarked;
