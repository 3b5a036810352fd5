/**
 * The command {@code millrace}: where it begins, the options that all its commands have, and how failures end it. Each
 * command has a package of its own below; what several of them use is in {@code console}, {@code launch} and
 * {@code check}.
 */
@NullMarked
package org.millrace.cli;

import org.jspecify.annotations.NullMarked;
