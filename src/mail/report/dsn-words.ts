/**
 * dsn-words - the wording of mail systems for failures and delays, one system or language a line
 *
 * A new format of bounce needs a line in `FAILURES` or `FAILURE_SUBJECT`, a word in `DAEMON` if its sender is not
 * listed there, and a mail in `test/fixtures/bounces.txt`. Repetitions are bounded, because the texts are untrusted.
 *
 * Spec bounce.text
 */

/** Delivery continues. */
export const DELAYS: readonly RegExp[] = [
  /(this is a|THIS IS A) warning message only/i,
  /has not yet been delivered|have not yet been delivered/i,
  /(message|mail|delivery).{0,80}\b(is|has been|was) (delayed|postponed)/i,
  /will (keep|continue) (on )?(trying|to try|to be (attempted|retried))/i,
  /(delivery|message) (will be|is (still )?being) (re-?tried|retried)/i,
  /delivery attempts will continue|no action is required on your part|advisory-only email/i,
  /still (being retried|awaiting delivery|trying)/i,
  /do not resend your orig/i,
]
export const DELAY_SUBJECT =
  /^(re: )?(warning: )?(could not send message for past|(message|mail|delivery)( is)? delayed|delayed mail)|\((mail delivery )?delay(ed)?\)|has not yet been delivered|message delayed|zustellung verz(ö|oe)gert|^verz(ö|oe)ger|remise (retard|diff)|entrega (retrasada|atrasada)|recapito ritardato|bezorging vertraagd|配信.{0,6}遅|延迟|задерж/i

/** Delivery has ended, in the words of mail systems. */
export const FAILURES: readonly RegExp[] = [
  // Exim.
  /A message that you (have )?sent (could not be|was not) delivered to (all of its recipients|one or more)/i,
  // qmail, and systems with its wording.
  /(This is the|The) (\S+ )?(qmail-send|deliver|MTA) program at/i,
  /wasn't able to deliver (your|the following) message|was(n't| not) (able|possible) to deliver your (message|mail)/i,
  /unable to deliver (your )?(the )?(attached )?(message|mail)( to)?/i,
  // Apache James before 3.0, vtext.com.
  /^Error message below:\s*5\d\d/m,
  // Postfix.
  /message returned below could not be delivered|your message could not be delivered to one or more/i,
  // Sendmail and the like.
  /-{2,} ?The following addresses had (permanent fatal errors|delivery problems)/i,
  /-- ?Failed Recipients ?--|----Message not delivered to the following/i,
  /Delivery to the following recipients? (has |have )?failed|Delevery to the following recipients? failed/i,
  /did not reach (the following|some or all of the intended) recipient/i,
  /(could|can)( ?not|n't) be delivered( to)?|could not deliver( your)? message|was not delivered/i,
  /Your (message|mail).{0,200}(encountered delivery problems|was undeliverable|could not be processed)/is,
  /This Message was undeliverable|Undeliverable Address|undeliverable to \S+@/i,
  /(Unknown user|Invalid final delivery userid): \S+@|Delivery failed \d+ attempts/i,
  /An error was detected while processing the enclosed message|encountered an error while being processed/i,
  /no valid recipients were found|recipients? was aborted after/i,
  /(was|been) automatically rejected|has been rejected (by|for)|recipient could not be reached/i,
  /There is no user by that name|no such user here|Does not have a final email/i,
  /(mail box|mailbox) (is |was )?(full|disabled|not found)|does not exist on this|no longer (valid|exists|active|in use)/i,
  /An error has occurred while attempting to deliver a message for/i,
  /undeliverable recipient|has not been delivered|could not be delivered because/i,
  /UNDELIVERABLE MAIL|occurred while trying to deliver the mail to the following/i,
  /PERMANENT FATAL DELIVERY ERRORS|Failed to deliver to '|was blocked by our spam/i,
  // In other languages.
  /n'a pas pu (e|ê)tre (d(e|é)livr|remis|distribu)|n'existe pas/i,
  /no (pudo|ha podido) ser entregad|(nicht|konnte) zugestellt werden|nicht zustellbar/i,
  /n(ã|a)o (p(ô|o)de|foi poss(í|i)vel) ser entregue|n(ã|a)o foi poss(í|i)vel entregar/i,
  /kon(den)? niet worden (bezorgd|afgeleverd)|nie mog(ł|l)[ao] zosta(ć|c) dostarczon|nie dor(ę|e)czono/i,
  /non (è|e) stato possibile (recapitare|consegnare)|impossibile recapitare|recapito non riuscito/i,
  /no se (ha podido|pudo|puede) entregar|error de entrega|(é|e)chec de la remise|fehler bei der nachrichtenzustellung/i,
  /kunde inte levereras|kunne ikke leveres|ei voitu toimittaa|nem (lehetett|siker(ü|u)lt) k(é|e)zbes(í|i)teni|nelze doru(č|c)it|teslim edilemedi/i,
  /邮件无法(发送|送达)|退信|被退回|無法(傳送|傳遞)|配信(不能|に失敗)|не (может|могло|удалось) .{0,40}достав|не доставлен|Non-Delivery Report/i,
]
export const FAILURE_SUBJECT =
  /^(failure (notice|delivery)|returned mail|undeliver(able|ed)|mail delivery fail|delivery (failure|failed)|non-delivery|mail (could not be|not) delivered|mail system error|mail error|processing error|mail failed|mail delivery (problem|failure)|failed mail|message delivery failure|delivery status notification \(failure\)|automatically rejected|\[postmaster\] email delivery failure|failure notice)|delivery failed\)?$|could not be delivered\.?$|user unknown|message status - undeliverable|undeliverable (mail|message)|message you sent blocked|notice: mail delivery status|delivery (report|status).{0,20}(fail|error)|delivery notification: delivery has failed|^(un|nicht )zustellbar|unzustellbar|nicht zugestellt|non remis|non distribu(é|e)|no se (puede|pudo) entregar|no entregado|non recapitabil|n(ã|a)o entregue|onbestelbaar|nie dor(ę|e)czon|kan inte levereras|kan ikke leveres|olevererbar|ei voitu toimittaa|k(é|e)zbes(í|i)thetetlen|nedoru(č|c)iteln|teslim edilemedi|недоставлен|не доставлен|不能|退信|无法送达|无法投递|未送达|無法傳遞/i
/** Names of mail systems. */
export const DAEMON =
  /mailer-?daemon|post_?master|mail[ ._]delivery|mdaemon|delivery subsystem|system administrator|\bndr@|\bimss@|inetgw|mail administrator|jetmail|lsmtp|courier mail server|microsoftexchange[0-9a-f]{32}|mail-?daemon/i

/** A copy of the message follows these lines. */
export const COPY =
  /^(-{2,}|={2,}|_{2,}|\*{2,})? ?(Below this line is a copy|This is a copy of (the|your)|The (body|headers?) of (the|your) message|Original message (follows|header)|(Your )?original message|Returned Mail|Message (header|text) follows|Unsent message (below|follows)|Transcript of session follows.*original|Enclosed is a copy|A copy of the original message|Message contains|Message details:\s*$|Your message reads|----- Original message -----|Included is a copy|Below is a copy of|The header of the original)/im
export const EXPIRED =
  /(been in the queue too long|retry time(out)? (not reached|exceeded)|delivery time expired|maximum delivery attempts|failed \d+ attempts|within the allowed|retry timeout exceeded|could not be delivered (for|within|after) \d+ (day|hour|minute)|giving up on)/i
/** Words of a refusal without a code. */
export const REASON =
  /(unknown|no such|not (found|known|listed|a valid)|does ?n[o']t (exist|have)|no mailbox|invalid|quota|full|disabled|rejected|refused|denied|no longer|unreachable|not reachable|too (large|big)|exceed|spam|virus)/i
