"""The verbs of the phrasebook."""

from __future__ import annotations

from .conjugation import verb

# Activities.
EAT = verb("eat/ate", "comer")
DRINK = verb("drink/drank", "beber")
COOK = verb("cook", "cocinar")
BUY = verb("buy/bought", "comprar")
READ = verb("read/read", "leer", past="leí leíste leyó leímos leyeron", gerund="leyendo")
WRITE = verb("write/wrote/writing", "escribir")
WATCH = verb("watch", "ver", present="veo ves ve vemos ven", past="vi viste vio vimos vieron")
SEE = verb("see/saw/seeing", "ver", present="veo ves ve vemos ven", past="vi viste vio vimos vieron")
LISTEN = verb("listen to", "escuchar")
PLAY_GAME = verb("play", "jugar", "u>ue")
PLAY_MUSIC = verb("play", "tocar")
STUDY = verb("study/studied/studying", "estudiar")
SPEAK = verb("speak/spoke", "hablar")
CLEAN = verb("clean", "limpiar")
OPEN = verb("open", "abrir")
CLOSE = verb("close", "cerrar", "e>ie")
VISIT = verb("visit", "visitar")
HELP = verb("help", "ayudar")
CALL = verb("call", "llamar")
GIVE = verb("give/gave", "dar", present="doy das da damos dan", past="di diste dio dimos dieron")

# Moving, working, resting.
GO = verb(
    "go/went", "ir", present="voy vas va vamos van", past="fui fuiste fue fuimos fueron", gerund="yendo",
    imperative="ve",
)  # fmt: skip
ARRIVE = verb("arrive", "llegar")
WALK = verb("walk", "caminar")
SWIM = verb("swim/swam/swimming", "nadar")
DANCE = verb("dance", "bailar")
SING = verb("sing/sang", "cantar")
WORK = verb("work", "trabajar")
COST = verb("cost/cost", "costar", "o>ue")
LIVE = verb("live", "vivir", imperfect=True)
SLEEP = verb("sleep/slept", "dormir", "o>ue", past="dormí dormiste durmió dormimos durmieron", gerund="durmiendo")
GET_UP = verb("get/got/getting up", "levantarse")
GO_TO_BED = verb("go/went to bed", "acostarse", "o>ue")
STAY = verb("stay", "quedarse")

# Having, wanting, thinking.
_TENGO = "tengo tienes tiene tenemos tienen"
HAVE = verb("have/had", "tener", imperfect=True, present=_TENGO, stem="tendr")
HAVE_TO = verb("have/had", "tener", past="tuve tuviste tuvo tuvimos tuvieron", present=_TENGO, stem="tendr")
NEED = verb("need", "necesitar", imperfect=True)
WANT = verb("want", "querer", "e>ie", imperfect=True, stem="querr")
PREFER = verb("prefer/preferred/preferring", "preferir", "e>ie", imperfect=True)
LOVE_PERSON = verb("love", "querer", "e>ie", imperfect=True, stem="querr")
KNOW = verb("know/knew", "saber", present="sé sabes sabe sabemos saben", stem="sabr", imperfect=True)
THINK = verb("think/thought", "creer", imperfect=True)
SAY = verb(
    "say/said", "decir", "e>i", present="digo dices dice decimos dicen", past="dije dijiste dijo dijimos dijeron",
    stem="dir", gerund="diciendo",
)  # fmt: skip

# What English says with `be`. Past states are Spanish imperfects; `ser` judges events (`fue`).
SER = verb("be/was", "ser", present="soy eres es somos son", past="fui fuiste fue fuimos fueron")
ESTAR = verb("be/was", "estar", present="estoy estás está estamos están", imperfect=True)
TENER = verb("be/was", "tener", imperfect=True, present=_TENGO, stem="tendr")
HACER = verb("be/was", "hacer", present="hago haces hace hacemos hacen", stem="har", imperfect=True)
HABER = verb("be/was", "haber", present="hay hay hay hay hay", past="había había había había había", stem="habr")
RAIN = verb("rain", "llover", "o>ue")
CAN = verb("can", "poder", "o>ue", stem="podr")

# The thing or deed is the Spanish subject, the person feels it: me gusta el fútbol.
LIKE = verb("like", "gustar")
LOVE = verb("love", "encantar")
INTEREST = verb("be/was interested in", "interesar", imperfect=True)
HURT = verb("hurt/hurt", "doler", "o>ue")

# In passages only.
FIND = verb("find/found", "encontrar", "o>ue")
LEAVE = verb("leave/left", "dejar")
LOSE = verb("lose/lost", "perder", "e>ie")
REMEMBER = verb("remember", "recordar", "o>ue")
REPAIR = verb("repair", "reparar")
SELL = verb("sell/sold", "vender")
TAKE = verb("take/took", "llevar")
TRAVEL = verb("travel", "viajar")
USE = verb("use", "usar")
WASH = verb("wash", "lavar")
WEAR = verb("wear/wore", "llevar")
