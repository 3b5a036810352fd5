package org.millrace.bootstrap;

import java.util.BitSet;
import org.millrace.bootstrap.Recovery.Mail;

/**
 * Decision of a {@link Recovery}.
 *
 * @param kind    {@link Mail#AGREE} or {@link Mail#SHRINK}
 * @param flag    agreed value. In a decision about the members, whether the members have completed the group of the
 *                previous decision
 * @param call    number of the call of {@link Recovery#agree} since the last decision; 0 in a decision about the
 *                members
 * @param members members of the next group, as numbered in the first group (see {@link Recovery.Descent})
 * @param meeting invitation to the next group, with its secret. The first member sends the invitation only to the other
 *                members. Empty in proposals and at a {@link DecisionPlace}: excluded ranks can read that place
 */
record Decision(Mail kind, boolean flag, int call, BitSet members, byte[] meeting) {

    Decision(Mail kind, boolean flag, int call, BitSet members) {
        this(kind, flag, call, members, new byte[0]);
    }

    byte[] encode() {
        return new LetterWriter().number(kind.ordinal())
                .number(flag ? 1 : 0)
                .number(call)
                .sized(members.toByteArray())
                .sized(meeting)
                .bytes();
    }

    static Decision decode(byte[] bytes) {
        RankLetter letter = new RankLetter(0, "a decision", bytes);
        Decision decision = new Decision(Mail.values()[letter.number("its kind", 0, Mail.SHRINK.ordinal())],
                letter.number("its value", 0, 1) == 1, letter.number("its call", 0, Integer.MAX_VALUE),
                BitSet.valueOf(letter.sized("members")), letter.sized("an invitation"));
        letter.end();
        return decision;
    }

    /**
     * Request of a rank for a decision.
     *
     * @param flag     value of the caller of {@link Recovery#agree}. In a decision about the members, whether this rank
     *                 has completed its part of the group of the previous decision
     * @param call     number of this call of {@link Recovery#agree} since the last decision; 0 in a decision about the
     *                 members
     * @param ballot   rank of the coordinator whose proposal the requesting rank has accepted; -1 if none
     * @param proposal accepted proposal; empty if none
     */
    record Request(boolean flag, int call, int ballot, byte[] proposal) {

        byte[] encode() {
            return new LetterWriter().number(flag ? 1 : 0).number(call).number(ballot).sized(proposal).bytes();
        }

        static Request decode(int rank, byte[] bytes) {
            RankLetter letter = new RankLetter(rank, "a recovery", bytes);
            Request request =
                    new Request(letter.number("its value", 0, 1) == 1, letter.number("its call", 0, Integer.MAX_VALUE),
                            letter.number("its ballot", -1, Integer.MAX_VALUE), letter.sized("a proposal"));
            letter.end();
            return request;
        }
    }
}
