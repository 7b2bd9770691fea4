import sys,re; sys.path.insert(0,"/tmp/a1"); 
from host import *
src=open("/tmp/l1/lint.py").read(); import base64
exec(src[src.index("def b64n"):src.index("def go(")])
W="/tmp/s1/ws"
subprocess.run(["/work/attack/embody","--workspace",W,"init"],capture_output=True,env={"HOME":"/tmp/s1"})
open("/tmp/s1/b.py","w").write(open("/tmp/a1/body.py").read().replace('json.loads(os.environ.get("TOOLS") or "null")','json.load(open("/tmp/s1/tools.json"))').replace("/tmp/a1/body.log","/tmp/s1/body.log"))
open(W+"/embody.toml","a").write('\n[[body]]\nname="b"\ncommand=["python3","/tmp/s1/b.py"]\n')
# reflect and save_memory
json.dump([],open("/tmp/s1/tools.json","w"))
h=Host(W); r=h.req("tools/list",{})
for t in r["result"]["tools"]:
    if t["name"] in("reflect_user_message","save_memory","reflect","context"): print(t["name"],json.dumps(t["inputSchema"].get("properties"))[:400], t["inputSchema"].get("required"))
h.req("tools/call",{"name":"runtime_bootstrap","arguments":{}}); time.sleep(.4)
import itertools
def field(n):
    for t in r["result"]["tools"]:
        if t["name"]==n: return (t["inputSchema"].get("required") or ["text"])[0]
for tool in ("reflect_user_message","save_memory"):
    for k,g in gens.items():
        out=[]
        for n in (5000,20000):
            t=time.time(); x=h.req("tools/call",{"name":tool,"arguments":{field(tool):g(n)}},40); dt=time.time()-t
            out.append((n,round(dt,2),str(x)[:60] if isinstance(x,str) else str(x.get("result",{}).get("content",x))[:50]))
            if isinstance(x,str): print("!!!",k,x); h=Host(W);h.req("tools/call",{"name":"runtime_bootstrap","arguments":{}}); time.sleep(.4)
        if out[-1][1]>0.6 or k in("word a",): print(tool,k,out,flush=True)
for n in (300000,1000000):
    t=time.time(); x=h.req("tools/call",{"name":"reflect_user_message","arguments":{field("reflect_user_message"):"remind me tomorrow to call Ann. "*(n//32)}},40); print("reflect big",n,round(time.time()-t,2),str(x)[:300])
h.close()
print(time.strftime("%H:%M:%S"))
for k,g in gens.items():
    out=[]
    for n in (100000,400000):
        json.dump([{"name":"t%d"%n,"description":g(n),"inputSchema":{"type":"object"}}],open("/tmp/s1/tools.json","w"))
        t=time.time(); h=Host(W); x=h.req("tools/list",{},60); dt=time.time()-t; h.p.kill()
        out.append((n,round(dt,2),x if isinstance(x,str) else len(x["result"]["tools"])))
    print("scan",k,out,"<<<" if out[1][1]>4 else "",flush=True)
