/**
 * reply-rules - the tables by which a refusal is classified: the patterns of each class, and the words that rule out a
 * dead recipient
 *
 * All patterns are read over words without names (`reply-words.ts`): `@` is an address, `~` a host or URL, `#` an
 * address of the network. `RULES` are tried in order, the first that holds gives the class. If it is `hard`, the table
 * `VETOES` is read next, because large receivers use the codes and words for a dead mailbox for many other cases, and
 * a recipient who is suppressed wrongly cannot notice it. In doubt a reply is not hard.
 *
 * Every repetition is bounded and not nested, so that matching stays fast.
 *
 * Spec delivery.class, message.hard
 */

import type { Phase } from './outcome.ts'

export interface Rule {
  readonly classification: string
  readonly text: RegExp
  /** A line that this matches is not for the rule. */
  readonly not?: RegExp
  readonly phases?: readonly Phase[]
  /** The address is dead when the other conditions of `hard` hold too. */
  readonly hard?: true
  /** Temporary with any reply code. */
  readonly temporary?: true
}

/** Words that show that a refusal is not about a dead recipient, and its class then. */
export type Veto = Pick<Rule, 'classification' | 'text' | 'not'>

/** Phases in which a refusal can be about the recipient. */
const RECIPIENT_PHASES: readonly Phase[] = ['rcpt', 'data', 'dot']

/** Matches any of these alternatives, ignoring case. */
function anyOf(...alternatives: string[]): RegExp {
  return new RegExp(alternatives.join('|'), 'i')
}

/** `\b` knows only ASCII letters: words of other scripts have no `\b`. */
const UNKNOWN_RECIPIENT = anyOf(
  '(user|recipient|mailbox|address|addressee|account|alias|@[\\])]?)( is| name)? (unknown|unrecognized|invalid|not (found|known|exist|valid|present))',
  '(user|recipient|mailbox|address|account|person)( \\S{1,64}| \\(@\\))? (unknown|not (found|known|exist)|unallocated)',
  'unknown (or illegal )?(alias|user|recipient|mailbox|address|account|local part)',
  "(no|not?) such (a )?(user|mailbox|recipient|address|account|person|customer)|no mail[- ]?box|isn't a valid",
  "(doesn't|does not|did not) have an? .{0,40}account|not a valid e?-?mail address|address no longer (valid|accepts)",
  "(user|recipient|mailbox|address|account|that you tried to reach|email|@[\\])]?)( you .{0,40})? (does not|doesn't|do not|didn't) exist",
  'mailbox (unavailable|not available|not found)|(invalid|bad|incorrect) (recipient|mailbox|user|destination mailbox)',
  'not a (valid|known) (user|mailbox|recipient|address)|user (is )?invalid|not our customer|undeliverable address',
  '(bad_|invalid_)(recipient|user|mailbox)|not an active (address|mailbox|account|user)|address (could not be found|is (possibly )?incorrect)|marked as invalid|not listed in .{0,40}(directory|address book)|no longer (here|exists)|no longer (valid|exists|on server)|recipient rejected',
  'utilisateur inconnu|destinataire (inconnu|invalide)|adresse .{0,40}(inconnue|invalide)',
  '(empf(ä|ae)nger|benutzer|adresse|postfach) .{0,30}(unbekannt|existiert nicht|nicht gefunden)',
  '(usuario|destinatario|buz(ó|o)n|cuenta) .{0,20}(desconocid|no existe|inexistente)|no existe .{0,20}(usuario|persona)',
  '(utente|destinatario|casella) .{0,20}(sconosciut|inesistente|non esiste)|(usu(á|a)rio|destinat(á|a)rio|conta) .{0,20}(desconhecid|n(ã|a)o existe|inexistente)',
  'nie ma takiego|(u(ż|z)ytkownik|adres|konto) .{0,20}(nieznany|nie istnieje)|onbekende (gebruiker|ontvanger)|ok(ä|a)nd (mottagare|anv(ä|a)ndare)',
  '(пользовател\\S{1,3}|адресат|ящик) .{0,20}(не найден|не существует|неизвест)|нет такого',
  '(用户|收件人|邮箱|帐号|账号).{0,6}(不存在|未找到)|(ユーザー?|宛先|受信者).{0,8}(存在しません|見つかりません|不明)',
)

const FULL = anyOf(
  'over ?-?quota|quota (is )?(full|exceeded|violation)|exceed\\w* .{0,30}\\bquota|\\bquota\\b',
  "(mailbox|inbox|box|account|user) (is |was )?(too )?full|\\bfull\\b|\\bstorage\\b|(enough|disk|free|'s) space|space (has been|is) (used|full)|would exceed|maximum allowed|mailbox (size )?limit exc?ee|not enough (storage|space)",
  '\\bpleine?\\b|\\bsatur(é|e)e?\\b|archiv(é|e)e ou pleine|(postfach|mailbox|speicher\\S{0,10}) .{0,20}(voll|(ü|ue)berschritten)|\\blleno\\b|\\bllena\\b|cuota|\\bpien[oa]\\b|\\bcheia\\b|\\bcheio\\b|pe(ł|l)n[ay]\\b|\\bvol\\b|\\bfull\\b',
  'переполнен|квот|(邮箱|信箱|空间|容量|空間).{0,6}(满|滿|不足|超)|已满|いっぱい|容量',
)

const SIZE = anyOf(
  'message (is |was |size )?(too )?(large|big|long|exceeds)|size exceeds|exceed\\w* .{0,40}\\bsize|\\bsize .{0,20}(limit|exceed)|max(imum)? (message )?size|too (large|big)\\b|taille limite',
)

const AUTHENTICATION = anyOf(
  '\\bdmarc\\b|\\bdkim\\b|\\bspf\\b|\\bptr\\b|\\br ?dns\\b|reverse (dns|lookup|hostname)|cannot find your (reverse )?hostname',
  'unauthenticated|not authenticated|authenticat\\w* (is |level )?(required|failed|needed)|authentication (level|required)|proper authentication|smtp auth|must (be )?authenticate',
  '(starttls|\\btls\\b|encryption) .{0,20}(required|needed|mandatory)|must issue a? ?starttls|(require\\w*|need) (starttls|tls)\\b',
  'spoof|sendernotauthenticated|\\bauthenticat|credential|password|certificate|\\bdane\\b|\\btlsa\\b|starttls|\\btls\\b|cipher',
)

const VIRUS = anyOf('virus|malware|infected|phish|trojan|\\bworm\\b')

const SPAM = anyOf(
  '\\bspam|spam\\b|junk ?mail|unsolicited|(content|message content|mail content) .{0,20}(reject|denied|refus)|url in this .{0,20}listed|uribl|surbl|\\bubes?\\b|bulk mail',
)

const BLOCKED = anyOf(
  'dnsbl|\\b(rbl|rhsbl)\\b|(block|black) ?-?list|\\bip\\b.{0,60}\\b(block|bann?ed|listed|deny|denied|bloqu)|\\b(blocked|banned|listed)\\b.{0,40}\\bip\\b',
  'spamhaus|spamcop|barracuda|reputation|\\bS31[45]0\\b|\\bblocked (by|using|for|with)\\b|(banned|blocked) (sending|sender)|\\bis_blocked|^55\\d( 5\\.\\d\\.\\d+)? blocked\\.?$',
  '(ip|host|server|network|# ?\\]?) .{0,30}(is |are |was |has been )(banned|blocked|listed|blacklisted|blocklisted)|bloqu(é|e)e? pour',
)

/** The sender, by name or number. */
const SENDER = anyOf(
  "\\bsenders?('s)?\\b|\\bsending (domain|address|host|server|account|user)|mail ?from(:| ?<| @| (domain|address|host|command))|from (address|header|domain)|envelope (sender|from)|originator|return path|reverse.path|bounced? address|\\byour (e-?mail |mail )?(address|account|mailbox)\\b|\\byou are sending from|\\bmail from\\b(?! you\\b)|\\bfrom: |\\bbatv\\b|backscatter|unsigned dsn|\\bdsns\\b|not owned by|address used to send|address is not verified|invalid domain",
  'exp(é|e)diteur|(é|e)metteur|absender|remitente|mittente|remetente|отправител|发件人|送信者|nadawc',
)

const CLIENT = anyOf(
  '\\bhelo\\b|\\behlo\\b|client (host|address|ip|#|\\[)|\\byour (ip|host|server|domain|network|isp|mta|provider|system|account)\\b|connecting (host|ip|server|address)|\\byour access\\b|source ip|adresse ip|\\bip address\\b|remote host name',
)

const RELAY = anyOf(
  "\\brelay(ing)?\\b.{0,30}(denied|not (permitted|allowed)|prohibited|refused|rejected|disallowed|unable)|(unable|not permitted|not allowed|isn't allowed|refus\\w+|cannot|open) (to )?relay|rcpthosts?\\b|\\brelay access|we do(n't| not) (relay|handle)|\\b(as a|mail|to) relay\\b|\\brelaying\\b|gateway|non-?local e?-?mail|^551.{0,80}relay|not (a )?(local|relay) (domain|host)",
)

const RATE = anyOf(
  '\\brate\\b|rate ?-?limit|ratelimit|too (many|much|quickly|fast|often|frequent)|frequen(cy|tly|ce)|throttl|\\bvolume\\b|(daily|hourly|sending|message|recipient|connection)s? (sending )?(limit|quota)|\\blimit(s|ed|ing)? (on|for|of|has|was|is|exceeded|reached)|exceed\\w* .{0,20}\\b(limit|rate)|\\bexceed(s|ed)? what\\b|per (hour|minute|day)|slow down',
  'trop de|zu viele|demasiad|troppi|muit[ao]s|слишком много|过于频繁|频率',
)

const PREFERENCE = anyOf(
  "(does not|doesn't|do not|don't) (want|wish|accept)|(recipient|user) refuse|refuse[sd]? (due|by)\\b|refuses? to (accept|receive)|preferences?\\b|only (accepts?|accepting|receives?)|rejects? (mail|by filter)|rejected by (the )?(recipient|user)s?\\b|blocked by (the )?(recipient|user)|not (authori[sz]ed|permitted|allowed)|restrict|permission|opted? ?-?out|unsubscrib|whitelist|allow ?list|approved|members? only|challenge|not accepting (mail|messages) from|\\brules?\\b|protected by|user reject|not subscribed|non-?member|mailing list|captcha|organi[sz]ational settings|notauthorized",
)

const POLICY = anyOf(
  "polic(y|ies)|administrat\\w* prohibit|prohibited|\\bdenied\\b|not allowed|security|suspicious|quarantin|violat|\\bfilter|local reason|organi[sz]ation's rule|blocked\\b(?! due to inactiv)|threshold|complain",
)

const TEMPORARY = anyOf(
  'temporar|try (it )?(again|later)|again later|please (re-?try|wait|resend)|resend|\\bretry\\b|\\bbusy\\b|at (this|the) (time|moment)|later time|for now|time-?out|timed out|currently unavailable|service .{0,20}unavailable|momentan|vor(ü|ue)bergehend|temporairement|temporalmente|ult(é|e)rieurement|sp(ä|ae)ter|plus tard|m(á|a)s tarde|pi(ù|u) tardi|mais tarde|позже|稍后|稍後|しばらく',
)

/** The protocol between the two servers. */
const PROTOCOL = anyOf(
  '\\bcommands?\\b|before greeting|\\bprotocol\\b|send hello|unimplemented|not implemented|invalid (characters|arguments)|malformed|may not be repeated',
)

/** The way to the recipient, and the system that takes its mail. */
const SYSTEM = anyOf(
  '\\bloop(s|ed|ing)?\\b|hop count|too many hops|no route|(not |un)reachable|unrouteable|resolve route|could not connect|\\bconnections?\\b|service not (active|available)|incorrectly configured|insufficient|\\bresources?\\b|replicated|journal|(in|out)bounds? disabled|ambiguous|per transaction|storedriver|name server (reply|fail|error)|did not respond|no answer',
  '(internal|config(uration)?|system|local|server|disk|database|ldap|write|read(ing)?) (server )?(error|fault|problem|failure)|unknown (error|reason|problem)|error in processing|error while|while being processed|misconfigur|could not load|system call|transaction failed|create user output|permanent error',
  '\\b(delivery|message|queue)\\b.{0,40}\\b(expired|queued?)\\b|expired after|time expired|giving up|numerous attempts|multiple retries|failing for|has been delayed|attempts will continue|not been collected|queue period|could not be delivered for more than|low priority',
)

const DNS_FAULT = anyOf(
  '\\bdns\\b|resource record|name ?server (fail|error)|look-?up (fail|error|time)|\\bmx record|(a|mx)/(a|aaaa)',
)

/** Said of a dead recipient too: cut out before the vetoes are read. */
export const NEUTRAL: readonly RegExp[] = [
  /\b(relay|local|virtual|mailbox|alias|recipient)( (relay|local|virtual|mailbox|alias|recipient|domain))* (table|map|list)\b/gi,
  /\brelay=\S*/gi,
  /\b(check|verify|correct|confirm|double-?check)\w*\b.{0,80}?\b(try|resend|send|retry)\w*( it| again| your| the| message| mail| e-?mail)*/gi,
  /\b(return(ed|ing)?|bounc(ed|ing)|sent back) (mail |message )?(back )?to (the )?sender\b|\bsender (must|should|has to) (check|verify|correct)/gi,
  /\bno longer (accept|valid|active|exist|in use|available)\w*( (any )?(mail|messages|e-?mail))?/gi,
  /\bgiving up on \S{0,10}/gi,
  /\bdirectory (server )?(lookup|look-up)\b|\baddress lookup\b/gi,
  /\(in reply to [^)]{0,80}\)/gi,
  /\bname server: ?\S{0,10} ?(host|name)? not found/gi,
  /\b(over quota|out of storage( space)?) and inactive|\boverquotaperm\b/gi,
  /\bdomain .{0,80}does not accept mail/gi,
  /\bblocked due to inactivity|\bdisabled or discontinued/gi,
]

/** The first that holds takes `hard` from a reply and gives it its class. */
export const VETOES: readonly Veto[] = [
  { classification: 'TransientFailure', text: /gr[ae]y-? ?list/i },
  { classification: 'AuthenticationFailed', text: AUTHENTICATION },
  { classification: 'InvalidSender', text: /null ?mx/i, not: /^556|does not accept mail/i },
  { classification: 'PolicyRelated', text: /(blocked|rejected) by (the )?(recipient|user)/i },
  { classification: 'SpamBlock', text: BLOCKED },
  { classification: 'PolicyRelated', text: RATE },
  { classification: 'InvalidSender', text: SENDER },
  { classification: 'QuotaIssues', text: FULL },
  { classification: 'ContentRelated', text: SIZE },
  { classification: 'VirusRelated', text: VIRUS },
  { classification: 'SpamContent', text: SPAM },
  { classification: 'RelayingIssues', text: RELAY },
  { classification: 'TransientFailure', text: TEMPORARY },
  { classification: 'InvalidSender', text: DNS_FAULT },
  { classification: 'TransientFailure', text: SYSTEM },
  { classification: 'ProtocolErrors', text: PROTOCOL },
  { classification: 'PolicyRelated', text: CLIENT },
  { classification: 'PolicyRelated', text: PREFERENCE },
  // "Mailbox disabled, not accepting messages" is what 5.2.1 means (RFC 3463 3.3).
  { classification: 'PolicyRelated', text: /\bnot accepting\b/i, not: /\bdisabled\b/i },
  // Exchange replies "Recipient address rejected: Access denied" for addresses not in its directory.
  { classification: 'PolicyRelated', text: POLICY, not: /^550 5\.4\.1 .{0,40}rejected ?: access denied/i },
  {
    classification: 'ContentRelated',
    text: /\bcontent\b|\battachment|\bheaders?\b|\bmime\b|8-?bit|base64|fully.qualified|multiple addresses/i,
  },
]

export const RULES: readonly Rule[] = [
  { classification: 'TransientFailure', text: /^4.*gr[ae]y-? ?list/i },
  { classification: 'PolicyRelated', text: /too many (invalid recipients|errors|unknown|bad )/i },
  {
    classification: 'PolicyRelated',
    text: /(daily|hourly) .{0,20}(limit|quota)|unusual rate|receivingrate|exceeded .{0,60}per (hour|day)|limit .{0,40}(per|in an) (hour|day)|receiv\w+ .{0,20}too (quickly|fast)/i,
  },
  {
    classification: 'InvalidRecipient',
    text: /\b5\.1\.10\b.*(resolver\.adr|recipientnotfound)/i,
    phases: RECIPIENT_PHASES,
    hard: true,
  },
  {
    classification: 'BadDomain',
    text: /^556|null ?mx|\b5\.7\.18\b|\b5\.1\.10\b/i,
    not: /sender|\b5\.7\.27\b/i,
    hard: true,
  },
  // Exchange Online on the next server, which may be a smart host of the receiver: it is not about the recipient.
  { classification: 'TransientFailure', text: /\b[45]\.4\.300\b/ },
  { classification: 'BadDomain', text: /\b[45]\.4\.310\b/ },
  { classification: 'DNSFailure', text: /\b[45]\.4\.312\b/ },
  { classification: 'BadConnection', text: /\b[45]\.4\.31[67]\b/ },
  {
    classification: 'InactiveMailbox',
    text: /overquotaperm\b|\b(account|mailbox|user|recipient)\b[^.;]{0,60}\b(disabled|inactive|inactivity|suspended|closed|deactivated|discontinued|not activ(e|ated))\b|\b(disabled|inactive|suspended|deactivated) ?(e?-?mail )?(account|mailbox|user|recipient|address)/i,
    not: /\bsend(er|ing)\b|\byour (account|domain|ip|server)/i,
    hard: true,
  },
  {
    classification: 'QuotaIssues',
    text: /\b[45]\.2\.2\b|over ?-?quota|quota (exceeded|violation)|exceeded .{0,20}quota|(mailbox|inbox) (is |was )?full|out of storage|mailbox limit exc?ee|exceeded storage|^552.*storage allocation/i,
  },
  { classification: 'ContentRelated', text: new RegExp(`\\b[45]\\.2\\.3\\b|\\b[45]\\.3\\.4\\b|${SIZE.source}`, 'i') },
  {
    classification: 'AuthenticationFailed',
    text: /\b[45]\.7\.(2[0-69]|30|509|515)\b|\bdmarc\b|\b(dkim|spf)\b.{0,60}(fail|(not|n't) pass|invalid|missing|required|policy)|(fail|(not|n't) pass|invalid|missing).{0,40}\b(dkim|spf)\b|unauthenticated|not authenticated|dmarcrejection|authentication (is )?required|smtp authentication|spoof|(starttls|tls) (is )?required|\bptr\b|\br ?dns\b|reverse dns|cannot find your (reverse )?hostname/i,
    not: /relay/i,
  },
  { classification: 'VirusRelated', text: VIRUS },
  {
    classification: 'ProhibitedAttachment',
    text: /(attachment|file (type|name|extension)).{0,60}(block|not (allowed|accepted|permitted)|prohibit|reject|forbid|banned)|(block|banned|prohibited|forbidden) .{0,20}(attachment|file (type|extension))/i,
  },
  {
    classification: 'InvalidSender',
    text: /\b[45]\.1\.[78]\b|\b5\.7\.27\b|sender (address|domain)?.{0,60}(reject|denied|does not exist|not exist|invalid|unresolv|not resolve|not found|verif|must exist|has (no|null)\b|resolve fail)|domain of sender|invalid sender|sender verify|verification failed for @|invalid dns/i,
    not: /frequen|dnsbl|spamhaus|(block|black) ?list/i,
  },
  { classification: 'SpamBlock', text: BLOCKED, not: /blocked by the recipient|blocked using spam/i },
  {
    classification: 'SpamContent',
    text: SPAM,
  },
  {
    classification: 'InvalidRecipient',
    text: /\b5\.1\.[123]\b|^550 #?5\.1\.\d+ (?!.*access denied).*reject|\b5\.4\.1\b.*(recipient|access denied)|\b5\.5\.0\b.*mailbox/i,
    phases: RECIPIENT_PHASES,
    hard: true,
  },
  { classification: 'InvalidRecipient', text: UNKNOWN_RECIPIENT, phases: RECIPIENT_PHASES, hard: true },
  { classification: 'RelayingIssues', text: RELAY },
  { classification: 'QuotaIssues', text: FULL },
  {
    classification: 'RoutingErrors',
    text: /\b[45]\.4\.[46]\b|unrouteable|unroutable|mail ?loop|loops back|looping|too many hops/i,
  },
  { classification: 'TooManyRecipients', text: /\b[45]\.5\.3\b|too many recipients/i, temporary: true },
  { classification: 'AuthenticationFailed', text: AUTHENTICATION },
  {
    classification: 'PolicyRelated',
    text: /polic(y|ies)|rate ?-?limit|frequency|too many (connections|messages)|throttl|try (again|later)|\b[45]\.7\.(?!13\b)\d+|denied|reject|not allowed|prohibit|blocked|refused/i,
  },
  { classification: 'InactiveMailbox', text: /\b5\.2\.1\b|\b5\.7\.13\b|\b5\.1\.6\b/i, hard: true },
  {
    classification: 'InvalidRecipient',
    text: /^55[013]( 5\.[10]\.\d+)?$/,
    phases: ['rcpt'],
    hard: true,
  },
  { classification: 'ProtocolErrors', text: /^50[0-4]|\b[45]\.[56]\.\d+|syntax error|^(?![2-5]\d\d( |$))/i },
  { classification: 'DNSFailure', text: /\b[45]\.4\.3\b/ },
  { classification: 'NoAnswerFromHost', text: /\b[45]\.4\.1\b/, not: /relay/i },
  { classification: 'BadConnection', text: /^421 4\.4\.2\b/ },
  { classification: 'TransientFailure', text: /^4/ },
  { classification: 'Uncategorized', text: /(?:)/ },
]
