/* top_testing_int.h - answers of a server, for tests of the code that reads and draws them.
 *
 * JSON is written with ' for ", so that it stays readable.
 */
#pragma once

#include "base/testing.h"
#include "cli/top_model.h"

#define LAYOUT_RANGE(id, min, allotted, second, minute, percent, throttled)                    \
    "{'id':'" id "','min':'" min                                                               \
    "','max':'FF','items':600,'bytes':61440,'normalizedConsumption':" percent                  \
    ",'ru':{'allotted':" allotted ",'lastSecond':" second ",'lastMinute':" minute              \
    ",'total':1},'requests':{'lastMinute':300,'total':9},'throttled':{'lastMinute':" throttled \
    ",'total':99}}"

#define LAYOUT                                                                                     \
    "{'database':'shop','container':'orders','time':1700000000,'throughput':{'mode':'manual',"     \
    "'ru':800,'isShared':false},'totals':{'logicalPartitions':1234,'logicalPartitionsExact':true}" \
    ","                                                                                            \
    "'ranges':[" LAYOUT_RANGE("0", "", "400", "400", "12000.5", "100", "12") "," LAYOUT_RANGE(     \
        "1", "1FFFFFFFFFFFFFFF", "400", "20.5", "600", "12.25", "0") "]}"

/* Ten seconds: the first partition gets hotter and is throttled, the second one bursts once. */
#define HISTORY                                                                                \
    "{'grain':'second','from':1699999990,'to':1700000000,'ranges':["                           \
    "{'id':'0','ru':[0,10,50,100,150,200,300,380,400,400],'throttled':[0,0,0,0,0,0,0,0,3,9]}," \
    "{'id':'1','ru':[0,0,0,0,0,600,20,20,20,20.5],'throttled':[0,0,0,0,0,0,0,0,0,0]}]}"

#define BY_RU                                                                                      \
    "{'by':'ru','rows':[{'key':'[\\'hot\\']','isCut':false,'range':'0','epk':'0A','amount':11400," \
    "'amountMax':11400,'share':0.905},{'key':'[\\'cool\\',5]','isCut':false,'range':'1','epk':"    \
    "'2B','amount':600.5,'amountMax':601,'share':0.048}]}"

#define BY_THROTTLED                                                                       \
    "{'by':'throttled','rows':[{'key':'[\\'hot\\']','isCut':false,'range':'0','epk':'0A'," \
    "'amount':12,'amountMax':12,'share':1}]}"

#define NO_KEYS "{'by':'ru','rows':[]}"

/* Of this container a merge is under way, a split has failed and another is done. */
#define EVENT(container, what, stage, sources, targets, ended, percent, message)                \
    "{'database':'shop','container':'" container "','event':1,'what':'" what                    \
    "','reason':'asked','stage':'" stage "','sources':[" sources "],'targets':[" targets        \
    "],'begun':1699999000,'ended':" ended ",'bytes':1,'bytesTotal':12582912,'percent':" percent \
    ",'items':1,'caughtUp':0,'fenceMicroseconds':2100,'message':'" message "'}"

#define EVENTS                                                                                 \
    "{'time':1700000000,'moves':[" EVENT(                                                      \
        "orders", "merge", "copying", "'3','4'", "'5'", "0", "45",                             \
        "") "," EVENT("others", "split", "copying", "'0'", "'1','2'", "0", "5",                \
                      "") "," EVENT("orders", "split", "failed", "'2'", "", "1699999990", "0", \
                                    "one key") "," EVENT("orders", "split", "done", "'0'",     \
                                                         "'2','3','4'", "1699999000", "100",   \
                                                         "") "]}"

#define NO_EVENTS "{'moves':[]}"

/* A layout of which a node knows the second partition only. */
#define SPACE(number, id) "','space':" number ",'x':'"
#define LAYOUT_IN_CLUSTER                                                                         \
    "{'database':'shop','container':'orders','missingRanges':['0'],'time':1700000000,"            \
    "'throughput':{'mode':'manual','ru':800,'isShared':false},'totals':{'logicalPartitions':null" \
    ",'logicalPartitionsExact':false},'ranges':[" LAYOUT_RANGE(                                   \
        "0','space':65537,'x':'", "", "400", "0", "0", "0",                                       \
        "0") "," LAYOUT_RANGE("1','space':65536,'x':'", "1FFFFFFFFFFFFFFF", "400", "20.5", "600", \
                              "12.25", "0") "]}"

#define NODE(name, state, owned, lag, age)                                             \
    "{'name':'" name "','state':'" state "','owned':" owned ",'followed':4,'lag':" lag \
    ",'renewalAgeMs':" age "}"

#define CLUSTER                                                                                 \
    "{'node':'b','leaseHolds':true,'moves':[{'space':65536,'from':'b'},{'from':7},8],'nodes':"  \
    "[" NODE("a", "live", "3", "0", "312") "," NODE("b", "draining", "0", "12", "40") "," NODE( \
        "c", "dead", "1", "9000",                                                               \
        "61234") "],'spaces':[{'id':1,'owner':'a'},{'id':65537,'owner':'c'},{'id':"             \
                 "65536,'owner':'a'}]}"
