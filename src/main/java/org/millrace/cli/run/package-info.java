/**
 * Ranks that a command starts. A rank is a thread of this process ({@link org.millrace.cli.run.ThreadRanks}), a further
 * JVM ({@link org.millrace.cli.run.ProcessRanks}), or a command of the user. {@link org.millrace.cli.run.RankRun} runs
 * the ranks to their end. The ranks report {@link org.millrace.cli.run.RankEvent}s. {@code millrace run} starts a
 * command as ranks of this host.
 */
@NullMarked
package org.millrace.cli.run;

import org.jspecify.annotations.NullMarked;
