"""Names of languages and countries by the codes that templates use.

From the documentation of the English Wikipedia's templates (Lang, Flag).
"""


def _table(entries: str) -> dict[str, str]:
    """Parse "code name, code name" to code -> name."""
    pairs = (entry.split(maxsplit=1) for entry in entries.split(","))
    return {code: name.strip() for code, name in pairs}


LANGUAGES = {  # by lower-case code, as in names of templates
    code.lower(): name
    for code, name in _table("""
ab Abkhaz, af Afrikaans, am Amharic, an Aragonese, ang Old English, ar Arabic, arc Aramaic, arz Egyptian Arabic, ast Asturian,
ay Aymara, az Azerbaijani, ba Bashkir, bar Bavarian, be Belarusian, ber Berber, bg Bulgarian, bn Bengali, bo Tibetan,
br Breton, bs Bosnian, ca Catalan, ce Chechen, ceb Cebuano, chr Cherokee, ckb Central Kurdish, co Corsican, cop Coptic,
cs Czech, cu Church Slavonic, cv Chuvash, cy Welsh, da Danish, de German, dv Dhivehi, dz Dzongkha, el Greek, en English,
en-GB British English, en-US American English, eo Esperanto, es Spanish, et Estonian, eu Basque, fa Persian, fi Finnish,
fil Filipino, fo Faroese, fr French, frm Middle French, fro Old French, frp Franco-Provençal, fur Friulian, fy West Frisian,
ga Irish, gd Scottish Gaelic, gl Galician, gn Guarani, goh Old High German, got Gothic, grc Ancient Greek,
grc-gre Ancient Greek, gsw Alemannic German, gu Gujarati, gv Manx, ha Hausa, haw Hawaiian, he Hebrew, hi Hindi,
hr Croatian, ht Haitian Creole, hu Hungarian, hy Armenian, ia Interlingua, id Indonesian, ig Igbo, ilo Ilocano,
is Icelandic, it Italian, iu Inuktitut, ja Japanese, jv Javanese, ka Georgian, kk Kazakh, kl Greenlandic, km Khmer,
kn Kannada, ko Korean, ku Kurdish, kw Cornish, ky Kyrgyz, la Latin, lad Judaeo-Spanish, lb Luxembourgish, li Limburgish,
lij Ligurian, lmo Lombard, ln Lingala, lo Lao, lt Lithuanian, lv Latvian, mg Malagasy, mi Māori, mk Macedonian,
ml Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese, nah Nahuatl, nap Neapolitan, nds Low German,
ne Nepali, nl Dutch, nn Norwegian Nynorsk, no Norwegian, nb Norwegian Bokmål, non Old Norse, nv Navajo, oc Occitan,
or Odia, os Ossetian, ota Ottoman Turkish, pa Punjabi, pl Polish, pms Piedmontese, ps Pashto, pt Portuguese, qu Quechua,
rm Romansh, ro Romanian, ru Russian, rue Rusyn, sa Sanskrit, sc Sardinian, scn Sicilian, sco Scots, sd Sindhi,
se Northern Sami, sh Serbo-Croatian, si Sinhala, sk Slovak, sl Slovene, sm Samoan, sn Shona, so Somali, sq Albanian,
sr Serbian, sr-Cyrl Serbian Cyrillic, sr-Latn Serbian, st Sotho, su Sundanese, sv Swedish, sw Swahili, syr Syriac,
ta Tamil, te Telugu, tg Tajik, th Thai, ti Tigrinya, tk Turkmen, tl Tagalog, tr Turkish, tt Tatar, ug Uyghur,
uk Ukrainian, ur Urdu, uz Uzbek, vec Venetian, vi Vietnamese, wa Walloon, wo Wolof, xh Xhosa, yi Yiddish, yo Yoruba,
za Zhuang, zh Chinese, zu Zulu,
aln Gheg Albanian, brh Brahui, rus Russian
""").items()
}

# The codes of {{flag|FRA}} and {{FRA}}: ISO codes, and IOC and FIFA codes where they differ
COUNTRIES = _table("""
AFG Afghanistan, ALB Albania, ALG Algeria, AND Andorra, ANG Angola, AGO Angola, ARG Argentina, ARM Armenia, ARU Aruba,
AUS Australia, AUT Austria, AZE Azerbaijan, BAH Bahamas, BHR Bahrain, BAN Bangladesh, BGD Bangladesh, BAR Barbados,
BLR Belarus, BEL Belgium, BLZ Belize, BEN Benin, BER Bermuda, BHU Bhutan, BOL Bolivia, BIH Bosnia and Herzegovina,
BOT Botswana, BRA Brazil, BRN Brunei, BUL Bulgaria, BGR Bulgaria, BFA Burkina Faso, BDI Burundi, CAM Cambodia,
KHM Cambodia, CMR Cameroon, CAN Canada, CPV Cape Verde, CHA Chad, CHI Chile, CHL Chile, CHN China, COL Colombia,
COD Democratic Republic of the Congo, CGO Republic of the Congo, CRC Costa Rica, CRI Costa Rica, CIV Ivory Coast,
CRO Croatia, HRV Croatia, CUB Cuba, CYP Cyprus, CZE Czech Republic, TCH Czechoslovakia, DEN Denmark, DNK Denmark,
DJI Djibouti, DOM Dominican Republic, ECU Ecuador, EGY Egypt, ENG England, ESA El Salvador, SLV El Salvador,
ERI Eritrea, ESP Spain, EST Estonia, ETH Ethiopia, EU European Union, FIJ Fiji, FIN Finland, FRA France,
FRO Faroe Islands,
FRG West Germany, GAB Gabon, GAM Gambia, GBR United Kingdom, GDR East Germany, GEO Georgia, GER Germany, DEU Germany,
GHA Ghana, GRE Greece, GRC Greece, GRN Grenada, GUA Guatemala, GTM Guatemala, GUI Guinea, GUY Guyana,
HAI Haiti, HTI Haiti,
HKG Hong Kong, HON Honduras, HND Honduras, HUN Hungary, INA Indonesia, IDN Indonesia, IND India, IRI Iran, IRN Iran,
IRL Ireland, IRQ Iraq, ISL Iceland, ISR Israel, ITA Italy, JAM Jamaica, JOR Jordan, JPN Japan,
KAZ Kazakhstan, KEN Kenya,
KGZ Kyrgyzstan, KOR South Korea, KOS Kosovo, KSA Saudi Arabia, SAU Saudi Arabia, KUW Kuwait, KWT Kuwait, LAO Laos,
LAT Latvia, LVA Latvia, LBA Libya, LBY Libya, LBN Lebanon, LBR Liberia, LIE Liechtenstein, LTU Lithuania,
LUX Luxembourg,
MAC Macau, MAD Madagascar, MAR Morocco, MAS Malaysia, MYS Malaysia, MDA Moldova, MDV Maldives, MEX Mexico,
MGL Mongolia,
MNG Mongolia, MKD North Macedonia, MLI Mali, MLT Malta, MNE Montenegro, MON Monaco, MCO Monaco, MOZ Mozambique,
MRI Mauritius, MYA Myanmar, MMR Myanmar, NAM Namibia, NCA Nicaragua, NIC Nicaragua, NED Netherlands, NLD Netherlands,
NEP Nepal, NPL Nepal, NGR Nigeria, NGA Nigeria, NIG Niger, NIR Northern Ireland, NOR Norway, NZL New Zealand,
NZ New Zealand, OMA Oman,
OMN Oman, PAK Pakistan, PAN Panama, PAR Paraguay, PRY Paraguay, PER Peru, PHI Philippines, PHL Philippines,
PLE Palestine,
PNG Papua New Guinea, POL Poland, POR Portugal, PRT Portugal, PRC China, PRK North Korea, PUR Puerto Rico, QAT Qatar,
ROC Taiwan, ROM Romania, ROU Romania, RSA South Africa, ZAF South Africa, RUS Russia, RWA Rwanda, SCO Scotland,
SCG Serbia and Montenegro, SEN Senegal, SGP Singapore, SIN Singapore, SLE Sierra Leone, SLO Slovenia, SVN Slovenia,
SMR San Marino, SOM Somalia, SRB Serbia, SRI Sri Lanka, LKA Sri Lanka, SSD South Sudan, SUD Sudan, SDN Sudan,
SUI Switzerland, CHE Switzerland, SUR Suriname, SVK Slovakia, SWE Sweden, SYR Syria, TAN Tanzania,
TZA Tanzania, THA Thailand,
TJK Tajikistan, TKM Turkmenistan, TOG Togo, TPE Chinese Taipei, TRI Trinidad and Tobago, TTO Trinidad and Tobago,
TUN Tunisia, TUR Turkey, TWN Taiwan, UAE United Arab Emirates, ARE United Arab Emirates, UGA Uganda, UK United Kingdom,
UKR Ukraine, URS Soviet Union, USSR Soviet Union, URU Uruguay, URY Uruguay, USA United States, US United States,
UZB Uzbekistan, VAT Vatican City, VEN Venezuela, VIE Vietnam, VNM Vietnam, WAL Wales, YEM Yemen, YUG Yugoslavia,
ZAM Zambia, ZMB Zambia, ZIM Zimbabwe, ZWE Zimbabwe
""")
